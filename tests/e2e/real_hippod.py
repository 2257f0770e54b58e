"""A real hippod process in its own folder, used through its socket and the real hippoctl."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
import psutil
import tomli_w

from tests.e2e.preloaded_start import HIPPOCTL, HIPPOD, Preloaded

ROOT = Path(__file__).parents[2]
PATIENCE_S = 90.0
"""Time limit in seconds for any step of a test: generous, because the machine may be busy."""

NO_PRIVILEGE = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH; refused where they are not held anyway
    libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP: not to be had again after exec
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Restarts Python as a process to which file permissions apply, even for root."""

Json = dict[str, Any]
Found = TypeVar("Found")


def clean_environment(home: Path) -> dict[str, str]:
    """Returns this process's environment without configuration of hippod, hippoctl or Python; `home` is the user's home.

    `PYTHONDONTWRITEBYTECODE` is removed too, because each start would otherwise compile all modules again.
    """
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("HIPPOD", "_HIPPOCTL", "XDG_", "PYTHON"))
    }
    return kept | {"HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def until(condition: Callable[[], Found], what: str, patience_s: float = PATIENCE_S, pause_s: float = 0.05) -> Found:
    """Calls `condition` until it returns a true value; returns it. Fails with `what` after `patience_s`."""
    deadline = time.monotonic() + patience_s
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"after {patience_s:g} s still not so: {what}")
        time.sleep(pause_s)
    return answer


@cache
def event_names() -> frozenset[str]:
    """Returns all names of log events in docs/reference/logs.md, which a test compares with the code."""
    table = (ROOT / "docs" / "reference" / "logs.md").read_text("utf-8").partition("## Events")[2]
    return frozenset(re.findall(r"^- `(\w+)`", table, re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def events(self) -> list[Json]:
        """Returns the log lines on stderr that are JSON objects."""
        return _objects(self.err)


def hippod(home: Path, *arguments: str, env: Mapping[str, str] | None = None, timeout_s: float = PATIENCE_S) -> Ran:
    """Runs `hippod` until it ends: for starts that fail or must fail."""
    return run_preloaded(HIPPOD, home, arguments, clean_environment(home) | dict(env or {}), timeout_s=timeout_s)


def run_preloaded(
    program: str,
    cwd: Path,
    arguments: Sequence[str],
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout_s: float = PATIENCE_S,
) -> Ran:
    """Runs HIPPOD or HIPPOCTL until it ends."""
    with tempfile.TemporaryDirectory(prefix="hd-") as said:
        out, err, given = (Path(said) / name for name in ("out", "err", "in"))
        given.write_bytes(stdin)
        running = Preloaded(program, arguments, env, cwd, err, NO_PRIVILEGE, out, given)
        try:
            code = running.wait(timeout_s)
        finally:
            running.kill()
        return Ran(code, out.read_bytes().decode(), err.read_bytes().decode())


def write_config(file: Path, sections: Mapping[str, Any]) -> Path:
    """Writes a configuration file with these tables; None omits a table."""
    file.write_text(tomli_w.dumps({name: table for name, table in sections.items() if table is not None}), "utf-8")
    return file


class Daemon:
    """One configuration, store and socket. `start` and `stop` may be repeated; the store stays.

    `home` contains the followed folders (`folders`, created if missing), the store, and the log. Further keywords are sections
    of the configuration. The encoder is `hash` by default. Measurements of memory set `preloaded` to false, because a fork
    inherits modules, free memory and malloc's arenas.
    """

    def __init__(
        self, home: Path, folders: Sequence[str] = ("drive",), preloaded: bool = True, **sections: Any
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home.resolve()
        self._preloaded = preloaded
        # A separate folder, because a Unix socket's path has at most 107 bytes.
        self._short = Path(tempfile.mkdtemp(prefix="hd-"))
        self.socket = self._short / "s"
        self.store = self.home / "store"
        self.folders = [self.home / name for name in folders]
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
        settings = [dict(sections.get("folder") or {}, path=str(folder)) for folder in self.folders]
        self.sections: dict[str, Any] = {
            "store": {"path": str(self.store)},
            "encoder": {"backend": "hash"},
            "schedule": {"rescan": "off"},
            **{name: table for name, table in sections.items() if name != "folder"},
            "folder": settings,
            "api": {"socket": str(self.socket), **sections.get("api", {})},
        }
        self.config = write_config(self.home / "hippod.toml", self.sections)
        self.log = self.home / "log.jsonl"
        self.process: Preloaded | subprocess.Popen[bytes] | None = None
        self.http = httpx2.Client(
            transport=httpx2.HTTPTransport(uds=str(self.socket), retries=0),
            base_url="http://hippod",
            timeout=PATIENCE_S,
            trust_env=False,
        )

    # Starting and stopping.

    def launch(self) -> Self:
        """Starts the process; does not wait until it is ready."""
        assert self.process is None
        environ, arguments = clean_environment(self.home), ["--config", str(self.config)]
        if self._preloaded:
            self.process = Preloaded(HIPPOD, arguments, environ, self.home, self.log, NO_PRIVILEGE)
            return self
        command = [sys.executable, "-c", NO_PRIVILEGE, "-m", HIPPOD, *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.home, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return self

    def start(self) -> Self:
        self.launch()
        return self.wait_ready()

    def wait_ready(self, patience_s: float = PATIENCE_S) -> Self:
        until(self._ready, "hippod is ready", patience_s, pause_s=0.02)
        return self

    def _ready(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"hippod ended with {self.process.returncode}:\n{self.log_text()[-4000:]}")
        try:
            return self.http.get("/healthz").status_code == 200
        except httpx2.TransportError:
            return False

    def stop(self, patience_s: float = PATIENCE_S) -> int:
        """Sends SIGTERM; returns the exit code."""
        assert self.process is not None
        self.process.terminate()
        return self._ended(patience_s)

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self._ended(PATIENCE_S)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def _ended(self, patience_s: float) -> int:
        assert self.process is not None
        code = self.process.wait(patience_s)
        self.process = None
        return code

    def restart(self) -> Self:
        assert self.stop() == 0, self.log_text()[-4000:]
        return self.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process in any state; the home folder stays."""
        if self.process is not None:
            self.process.kill()
            self._ended(PATIENCE_S)
        self.http.close()
        shutil.rmtree(self._short, ignore_errors=True)

    # The followed folder.

    @property
    def drive(self) -> Path:
        """The first followed folder."""
        return self.folders[0]

    def write(self, name: str, content: str | bytes) -> str:
        """Writes a file into the first folder; returns its URI."""
        path = self.drive / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path.as_uri()

    def uri(self, name: str) -> str:
        return (self.drive / name).as_uri()

    # Requests and logs.

    def log_text(self) -> str:
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def events(self, name: str) -> list[Json]:
        """Returns the log's events of one name, which must be a documented name: a misspelt name would never be found."""
        assert name in event_names(), f"hippod logs no event {name!r}"
        return [event for event in _objects(self.log_text()) if event.get("event") == name]

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "cli.main", "--socket", str(self.socket), *map(str, arguments)]

    def ctl(self, *arguments: str | Path, stdin: str = "", timeout_s: float = PATIENCE_S + 30) -> Ran:
        """Runs the real hippoctl."""
        given = ["--socket", str(self.socket), *map(str, arguments)]
        return run_preloaded(HIPPOCTL, self.home, given, clean_environment(self.home), stdin.encode(), timeout_s)

    def ctl_json(self, *arguments: str | Path, stdin: str = "") -> Json:
        """Returns hippoctl's output with --json; fails if it fails."""
        ran = self.ctl("--json", *arguments, stdin=stdin)
        assert ran.code == 0, (arguments, ran)
        answer: Json = ran.json
        return answer

    def ask(self, method: str, path: str, **options: Any) -> Json:
        """Sends one request that must succeed."""
        response = self.http.request(method, path, **options)
        assert response.is_success, (method, path, response.status_code, response.text)
        answer: Json = response.json()
        return answer

    def status(self) -> Json:
        return self.ask("GET", "/v1/status")

    def wait(self, timeout_s: float = PATIENCE_S) -> Json:
        """Waits until the present contents of the folders are committed or failed; returns the status."""
        return self.ask("POST", "/v1/wait", json={"timeout_s": timeout_s})

    def query(self, text: str, mode: str | None = "dense", k: int = 5) -> list[Json]:
        """Returns the found passages; `mode` None is the configured mode."""
        body = {"query": text, "k": k} | ({} if mode is None else {"mode": mode})
        return list(self.ask("POST", "/v1/query", json=body)["passages"])

    def documents(self, **params: Any) -> dict[str, Json]:
        """Returns the documents that `ls` lists, by URI."""
        answer = self.ask("GET", "/v1/documents", params={"limit": 10_000, **params})
        assert "next" not in answer
        return {document["uri"]: document for document in answer["documents"]}

    def add(self, *documents: Json) -> list[str]:
        return list(self.ask("POST", "/v1/documents", json={"documents": list(documents)})["documents"])

    def export(self) -> list[str]:
        """Returns the lines of the whole memory's export."""
        response = self.http.get("/v1/export")
        assert response.is_success
        return response.text.split("\n")[:-1]

    def metric(self, name: str, **labels: str) -> float:
        """Returns one value of /metrics; 0 if it was never counted."""
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        for line in self.http.get("/metrics").text.splitlines():
            head, _, value = line.rpartition(" ")
            given, _, rest = head.partition("{")
            if given == name and wanted <= set(rest.rstrip("}").split(",")):
                return float(value)
        return 0.0

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def children(self) -> list[psutil.Process]:
        """Returns the processes that the daemon started."""
        return psutil.Process(self.pid).children(recursive=True)

    @contextmanager
    def reading_paused(self) -> Iterator[None]:
        """Suspends the parsing processes, including replacements that the daemon starts, so that parsing waits."""
        held: set[psutil.Process] = set()
        over = threading.Event()

        def hold() -> None:
            while not over.wait(0.02):
                for reader in set(self.children()) - held:
                    held.add(reader)
                    reader.suspend()

        holding = threading.Thread(target=hold)
        holding.start()
        try:
            until(lambda: held >= set(self.children()), "all readers stand still", pause_s=0.02)
            yield
        finally:
            over.set()
            holding.join()
            for reader in held:
                reader.resume()


def texts(lines: Iterable[str], kind: str) -> list[Json]:
    """Returns the lines of an export that have this kind."""
    return [line for line in map(json.loads, lines) if line["kind"] == kind]


def _objects(text: str) -> list[Json]:
    out = []
    for line in text.splitlines():
        if line.startswith("{"):
            value = json.loads(line)
            if isinstance(value, dict):
                out.append(value)
    return out
