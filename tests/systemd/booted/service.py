"""hippod.service on the booted machine: set up, asked, and looked at."""

import json
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.systemd.booted.machine import Machine

PATIENCE_S = 120.0
WITH_THE_MODEL = """[store]
path = "/var/lib/hippod/store"
[api]
socket = "/run/hippod/hippod.sock"
[[folder]]
path = "/srv/notes"
settle_ms = 100
"""
CONFIGURATION = WITH_THE_MODEL + '[encoder]\nbackend = "hash"\n'
"""Starts in a third of the processor's time, for what does not depend on the encoder."""
with_the_model = pytest.mark.parametrize("service", [pytest.param(WITH_THE_MODEL, id="model")], indirect=True)


class Service:
    def __init__(self, machine: Machine, unit: str = "hippod") -> None:
        self.machine = machine
        self.unit = unit
        self.socket = f"/run/{unit.replace('@', '-')}/hippod.sock"

    def sh(self, script: str, code: int | None = 0) -> str:
        """What the script says, on both streams. `code` is what it must end with; None: anything."""
        done = self.machine.run(script)
        assert code is None or done.returncode == code, f"{script}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def write(self, path: str, text: str) -> None:
        place = self.machine.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def start(self, configuration: str) -> None:
        self.write("/srv/notes/engine.txt", "Ada Lovelace wrote notes about the Analytical Engine.\n")
        self.write("/etc/hippod/config.toml", configuration)
        self.sh("systemctl daemon-reload; systemctl start hippod.socket hippod.service")
        self.sh("hippoctl wait")

    def drop_in(self, text: str) -> None:
        self.write("/etc/systemd/system/hippod.service.d/test.conf", text)
        self.sh("systemctl daemon-reload")

    def clear(self) -> None:
        self.sh(
            "systemctl stop hippod.socket hippod.service; rm -rf /etc/systemd/system/hippod.service.d;"
            "systemctl daemon-reload; systemctl reset-failed; rm -rf /var/lib/hippod/store /srv/notes",
            None,
        )

    @property
    def pid(self) -> int:
        return int(self.sh(f"systemctl show -p MainPID --value {self.unit}"))

    @property
    def state(self) -> str:
        return self.sh(f"systemctl is-active {self.unit}", None).strip()

    def found(self, query: str) -> str:
        """The text of the best passage."""
        passages = json.loads(self.sh(f"hippoctl --json --socket {self.socket} query '{query}' -k 1"))["passages"]
        return str(passages[0]["text"]) if passages else ""

    def inside(self, script: str, user: str = "hippod") -> str:
        """What a script says in the sandbox, as hippod's user."""
        entered = f"nsenter -t {self.pid} -m -- setpriv --reuid {user} --regid {user} --clear-groups"
        return self.sh(f"{entered} sh -c '{script}'", None)

    def entries(self, since: float = 0.0) -> list[dict[str, str]]:
        """The journal's entries that hippod itself made, with all their fields."""
        found = self.sh(f"journalctl -u {self.unit} --since @{since:.0f} -o json --all --no-pager")
        entries = [json.loads(line) for line in found.splitlines()]
        # systemd's own messages about the unit are among them, as process 1.
        return [each for each in entries if each.get("_TRANSPORT") in ("stdout", "journal") and each.get("_PID") != "1"]

    def lines(self, since: float = 0.0) -> list[str]:
        """What an administrator reads of them."""
        return [str(each["MESSAGE"]) for each in self.entries(since)]

    def events(self, name: str) -> list[dict[str, Any]]:
        """The fields of the events of one name. An event before an exit is a line, of which `error` is all."""
        found = []
        for entry in self.entries():
            if entry.get("HIPPOD_EVENT") == name:
                fields = {key.removeprefix("HIPPOD_").lower(): value for key, value in entry.items()}
                found.append({key: _parsed(value) for key, value in fields.items()})
            elif entry["MESSAGE"].startswith(f"{name}: "):
                found.append({"event": name, "error": entry["MESSAGE"].partition(": ")[2]})
        return found

    def load(self, per_s: float, seconds: float = 600.0) -> "Load":
        return Load(self, per_s, seconds)

    def until(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            assert time.monotonic() < deadline, f"it never came to: {what}\n" + "\n".join(self.lines()[-20:])
            time.sleep(0.3)


def free_port() -> int:
    """Returns a TCP port that is free here; the booted machine has this machine's network."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _parsed(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


class Load:
    """Queries at a steady rate while the block runs. `summary`: what `load.py` says of them."""

    def __init__(self, service: Service, per_s: float, seconds: float) -> None:
        self._service = service
        self._command = ["python3", "/root/load.py", service.socket, str(per_s), str(seconds)]
        self.summary: dict[str, Any] = {}

    def __enter__(self) -> "Load":
        self._service.sh("rm -f /run/load-stop")
        command = self._service.machine.command(*self._command)
        self._running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        time.sleep(2)
        return self

    def __exit__(self, *_: object) -> None:
        self._service.sh("touch /run/load-stop")
        said, _stderr = self._running.communicate(timeout=PATIENCE_S * 2)
        self.summary = json.loads(said)
        print(self.summary)
