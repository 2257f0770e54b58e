"""Starts daemons as forks of a process that has imported hippod.

Imports take 2 s of processor time, most of a start, and the suite starts hundreds of daemons. A fork is a process with its own
environment, session, files and exit code; only its modules are already loaded. LanceDB starts its threads anew in a fork. Tests
of the start itself, or of memory, run `python -m daemon.main`.

This file is also the program that forks. It reads requests as lines of JSON and answers each with a line.
"""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

PRELOADED = ("daemon.main", "daemon.app.lifecycle")
POLL_S = 0.005


class PreloadedDaemon:
    """A running fork, with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        privilege_drop: str,
        out: Path = Path(os.devnull),
    ) -> None:
        """`log` and `out`: files to which standard error and standard output are appended. `privilege_drop`: a program that
        restarts Python as an unprivileged process."""
        sys.audit("subprocess.Popen", sys.executable, [sys.executable, "-m", "daemon.main"], None, None)
        self._server = _server(os.getpid(), privilege_drop)
        self.pid = int(self._server.ask(start=list(argv), env=dict(env), cwd=str(cwd), out=str(out), err=str(log)))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Returns the exit code, or the negative number of the signal that ended the process; None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.ask(poll=self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("hippod", timeout or 0)
            time.sleep(POLL_S)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Server:
    def __init__(self, privilege_drop: str) -> None:
        root = Path(__file__).parents[2]
        self._asking = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", privilege_drop, __file__],
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(root), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def ask(self, **request: Any) -> Any:
        with self._asking:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())


@cache
def _server(_pid: int, privilege_drop: str) -> _Server:
    """One for each process of the suite. It ends with that process, when its standard input closes."""
    return _Server(privilege_drop)


def serve() -> None:
    """Answers requests until standard input ends."""
    for name in PRELOADED:
        __import__(name)
    running: dict[int, int | None] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            with warnings.catch_warnings(action="ignore"):  # LanceDB's, about threads that did not survive the fork
                pid = os.fork()
            if pid == 0:
                become_daemon(request)
            running[pid] = None
            answer: int | None = pid
        else:
            pid = request["poll"]
            if running[pid] is None:
                ended, status = os.waitpid(pid, os.WNOHANG)
                running[pid] = os.waitstatus_to_exitcode(status) if ended else None
            answer = running[pid]
        print(json.dumps(answer), flush=True)


def become_daemon(request: Mapping[str, Any]) -> None:
    """Does what a start does before `daemon.main.main`; does not return."""
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, path in enumerate((os.devnull, request["out"], request["err"])):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY, 0o666)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["hippod", *request["start"]]
    from daemon.main import main

    main()
    raise AssertionError("hippod exits by itself")


if __name__ == "__main__":
    serve()
