"""Starts hippod and hippoctl as forks of a process that has imported both.

Imports take 2 s of processor time, most of a daemon's start, and the suite starts hundreds of daemons and commands. A fork is a
process with its own environment, session, files and exit code; only its modules are already loaded. LanceDB starts new threads
in a fork. Tests of the start itself, or of memory, run `python -m daemon.main` and `python -m cli.main`.

This file is also the program that forks. It reads requests as lines of JSON and answers each with a line.
"""

import json
import os
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from daemon.runtime.signals_and_exit import QuickExit

PRELOADED = (
    "daemon.main",
    "daemon.app.lifecycle",
    # Modules that hippod imports only while it starts, or at its first query.
    "encodings.ascii",
    "encodings.unicode_escape",
    "memory.openie.rules.extractor",
    "memory.retrieval.modes.fused",
    "pydantic.v1",
    "uvicorn.lifespan.off",
    # hippoctl; `serve` adds the commands, which hippoctl imports one at a time.
    "cli.main",
    "cli.command_line",
    "cli.client.typed_answers",
)
HIPPOD, HIPPOCTL = "daemon.main", "cli.main"
NAMES = {HIPPOD: "hippod", HIPPOCTL: "hippoctl"}


class Preloaded:
    """A running fork, with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        program: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        privilege_drop: str,
        out: Path = Path(os.devnull),
        given: Path = Path(os.devnull),
    ) -> None:
        """`program`: HIPPOD or HIPPOCTL. `log` and `out`: files to which standard error and standard output are appended.
        `given`: file for standard input. `privilege_drop`: a program that restarts Python as an unprivileged process."""
        sys.audit("subprocess.Popen", sys.executable, [sys.executable, "-m", program], None, None)
        self._server = _server(os.getpid(), privilege_drop)
        files = [str(given), str(out), str(log)]
        self.pid = int(self._server.ask(start=list(argv), program=program, env=dict(env), cwd=str(cwd), files=files))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Returns the exit code, or the negative number of the signal that ended the process; None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.ask(poll=self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        # The server collects the exit code only on request: until then, no other process gets this pid.
        if self.poll() is None:
            process = os.pidfd_open(self.pid)
            try:
                ended = select.poll()
                ended.register(process, select.POLLIN)
                if not ended.poll(None if timeout is None else timeout * 1000):
                    raise subprocess.TimeoutExpired("hippod", timeout or 0)
            finally:
                os.close(process)
        code = self.poll()
        assert code is not None
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
    """One server for each process of the suite. The server ends with the process, when its standard input closes."""
    return _Server(privilege_drop)


def serve() -> None:
    """Answers requests until standard input ends."""
    for name in PRELOADED:
        import_module(name)
    from cli.command_index import COMMANDS

    for module, _ in COMMANDS.values():
        import_module(f"cli.commands.{module}")
    running: dict[int, int | None] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            with warnings.catch_warnings(action="ignore"):  # LanceDB's, about threads that did not survive the fork
                pid = os.fork()
            if pid == 0:
                become(request)
            running[pid] = None
            answer: int | None = pid
        else:
            pid = request["poll"]
            if running[pid] is None:
                ended, status = os.waitpid(pid, os.WNOHANG)
                running[pid] = os.waitstatus_to_exitcode(status) if ended else None
            answer = running[pid]
        print(json.dumps(answer), flush=True)


def become(request: Mapping[str, Any]) -> None:
    """Sets up the fork like a new process and runs the program's `main`; does not return."""
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for number, path in enumerate(request["files"]):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY, 0o666)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - without what the server has read of its own
    sys.argv = [NAMES[request["program"]], *request["start"]]
    main = import_module(request["program"]).main
    if request["program"] == HIPPOCTL:
        ending = QuickExit()
        try:
            main()
        except SystemExit as error:
            if isinstance(error.code, int):
                ending.code = error.code
            raise
    main()
    raise AssertionError("hippod exits by itself")


if __name__ == "__main__":
    serve()
