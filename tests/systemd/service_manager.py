"""A hippod under a service manager that the test is: a notify socket, a watchdog's time, a socket made before the start."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.e2e.preloaded_start import HIPPOD, Preloaded
from tests.e2e.real_hippod import NO_PRIVILEGE, Daemon, clean_environment, until

LISTEN = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES="api")
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""Passes a descriptor on as systemd does; the process keeps its id."""


class Manager:
    """The notify socket. Every datagram is kept with the time at which it came (monotonic seconds)."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "notify")
        self.said: list[tuple[float, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                text = self._socket.recv(65536).decode()
            except OSError:
                return
            if text == "END":
                return
            self.said.append((time.monotonic(), text))

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"END", self.address)
        self._reader.join(10)
        self._socket.close()

    def texts(self) -> list[str]:
        """All that was said, in order."""
        return [text for _, text in list(self.said)]

    def states(self) -> list[str]:
        """What was said but watchdog's pings and requests for time, by the first line's name and value."""
        firsts = [text.split("\n")[0] for text in self.texts()]
        return [first for first in firsts if not first.startswith(("WATCHDOG=", "EXTEND_TIMEOUT_USEC=", "STATUS="))]

    def status(self) -> str:
        """The last STATUS line."""
        lines = [line for text in self.texts() for line in text.split("\n") if line.startswith("STATUS=")]
        return lines[-1].removeprefix("STATUS=") if lines else ""

    def fed(self) -> list[float]:
        """When the watchdog was fed."""
        return [at for at, text in list(self.said) if text == "WATCHDOG=1"]

    def has(self, state: str) -> bool:
        return state in self.states()

    def quiet_s(self) -> float:
        """For how long the watchdog has not been fed."""
        return time.monotonic() - (self.fed() or [0.0])[-1]

    def fed_after(self, moment: float) -> bool:
        return bool(self.fed()) and self.fed()[-1] > moment


class Managed(Daemon):
    """A daemon with a manager. `watchdog_s` None: nobody watches. `stderr` takes the log's place."""

    def __init__(self, home: Path, watchdog_s: float | None = None, activated: bool = False, **sections: Any) -> None:
        super().__init__(home, **sections)
        self.manager = Manager(self._short)
        self._watchdog_s = watchdog_s
        self.listening: socket.socket | None = None
        if activated:
            self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.listening.bind(str(self.socket))
            self.listening.listen(64)
        self.stderr: int | None = None

    def launch(self, also: dict[str, str] | None = None, preloaded: bool = True) -> Self:
        """`preloaded`: as a fork, unless the test passes a descriptor on."""
        assert self.process is None
        environ = clean_environment(self.home) | {"NOTIFY_SOCKET": self.manager.address} | (also or {})
        if self._watchdog_s is not None:
            environ["WATCHDOG_USEC"] = str(round(self._watchdog_s * 1_000_000))
        if preloaded and self.listening is None and self.stderr is None:
            options = ["--config", str(self.config)]
            self.process = Preloaded(HIPPOD, options, environ, self.home, self.log, NO_PRIVILEGE)
            return self
        run = ["-c", NO_PRIVILEGE, "-m", "daemon.main", "--config", str(self.config)]
        kept: Sequence[int] = ()
        if self.listening is not None:
            kept = (self.listening.fileno(),)
            run = ["-c", LISTEN, str(kept[0]), *run]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *run],
                env=environ,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log if self.stderr is None else self.stderr,
                start_new_session=True,
                pass_fds=kept,
            )
        return self

    def until_ready(self) -> Self:
        return self.until(lambda: self.manager.has("READY=1"), "READY=1")

    def until(self, condition: Callable[[], object], what: str) -> Self:
        """Waits for a condition while the process lives."""

        def holds() -> object:
            assert self.process is not None
            assert self.process.poll() is None, (
                f"hippod ended with {self.process.returncode}:\n{self.log_text()[-4000:]}"
            )
            return condition()

        until(holds, what)
        return self

    def close(self) -> None:
        super_process = self.process
        if super_process is not None:
            super_process.kill()
        self.manager.close()
        if self.listening is not None:
            self.listening.close()
        super().close()


def ask_raw(path: Path, body: str, request: str = "POST /v1/query") -> socket.socket:
    """Sends one request over a connection of its own and does not wait: the answer is there to be read from it."""
    asking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    asking.settimeout(90)
    asking.connect(os.fspath(path))
    head = f"{request} HTTP/1.1\r\nHost: hippod\r\nContent-Type: application/json\r\nConnection: close\r\n"
    asking.sendall(f"{head}Content-Length: {len(body.encode())}\r\n\r\n{body}".encode())
    return asking


def read_all(asking: socket.socket) -> str:
    parts = []
    while part := asking.recv(65536):
        parts.append(part)
    asking.close()
    return b"".join(parts).decode()
