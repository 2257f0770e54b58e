"""The child processes of the pool: started if none is idle, reused, and replaced at the limits of `ChildLimits`.

`Child` is the parent's view of a child process: its pipes, its timeouts, and the reason why it ended.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from consumers.failure_codes import FailureCode
from consumers.parsing.limits import MIB

_LARGEST_MESSAGE = 512 * MIB
_STDERR_KEPT = 4096
_START_TIMEOUT_S = 60.0
"""A start takes a tenth of a second, but much longer on a busy machine. A document's time limit does not include it."""
_ROOT = Path(__file__).resolve().parents[2]
# One thread for numeric libraries and one arena for the allocator: each further one needs tens of MiB of address space.
_LEAN = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "NLTK_DATA",
)
_NO_MEMORY = (b"MemoryError", b"bad_alloc", b"out of memory", b"Cannot allocate memory", b"can't allocate")

Message = dict[str, Any]


class ChildLost(Exception):
    """The child has ended or must not be used again. The message is the predicate of a sentence about the task. `remedy` says
    what to do if the task was to parse a file."""

    def __init__(self, message: str, code: FailureCode, remedy: str = "split it up, or exclude it") -> None:
        super().__init__(message)
        self.code = code
        self.remedy = remedy


class Child:
    """A child process and its present request. Created by `start`; serves one request at a time."""

    def __init__(self, process: asyncio.subprocess.Process, memory_bytes: int) -> None:
        self._process = process
        self._memory_bytes = memory_bytes
        self._errors = b""
        self._drain = asyncio.create_task(self._read_errors())
        self.requests = 0
        self.rss = 0
        self.between_requests = True
        self.interrupted = False

    @classmethod
    async def start(cls, memory_bytes: int, timeout_s: float) -> "Child":
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | _LEAN
        environment["PYTHONPATH"] = str(_ROOT)
        try:
            process = await cls._spawn(memory_bytes, timeout_s, environment)
        except OSError as error:
            raise ChildLost(
                f"could not begin, because no process could be started ({error.strerror or error})",
                FailureCode.CRASH,
                "it is tried again",
            ) from error
        child = cls(process, memory_bytes)
        try:
            await child.receive(_START_TIMEOUT_S)
        except BaseException:  # also on a cancellation: no unreferenced child may keep running
            await asyncio.shield(child.kill())
            raise
        return child

    @staticmethod
    async def _spawn(memory_bytes: int, timeout_s: float, environment: dict[str, str]) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # do not import from the daemon's working directory
            "-m",
            "daemon.parser_pool.child_main",
            f"--memory-bytes={memory_bytes}",
            f"--cpu-seconds={ceil(timeout_s)}",
            f"--parent={os.getpid()}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            limit=MIB,
            start_new_session=True,  # so that Ctrl-C in a terminal reaches only the parent
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs. Asks the system, because the event loop notices the end of a process a little later."""
        if self._process.returncode is not None:
            return False
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        return False

    async def send(self, message: Message, timeout_s: float) -> None:
        self.between_requests = False
        body = json.dumps(message, separators=(",", ":")).encode()
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(len(body).to_bytes(4) + body)
            await asyncio.wait_for(pipe.drain(), timeout_s)
        except TimeoutError:
            raise ChildLost(f"took longer than {timeout_s:g} s", FailureCode.TIME) from None
        except (BrokenPipeError, ConnectionResetError):
            raise await self._why_ended() from None

    async def receive(self, timeout_s: float) -> Message:
        """Returns the next message. Raises ChildLost if no message arrives in time, or if the child has ended."""
        pipe = self._process.stdout
        assert pipe is not None
        try:
            async with asyncio.timeout(timeout_s):
                length = int.from_bytes(await pipe.readexactly(4))
                if length > _LARGEST_MESSAGE:
                    raise ChildLost("gave more text than fits into memory", FailureCode.MEMORY)
                body = await pipe.readexactly(length)
        except TimeoutError:
            raise ChildLost(f"took longer than {timeout_s:g} s", FailureCode.TIME) from None
        except (asyncio.IncompleteReadError, ConnectionResetError):
            raise await self._why_ended() from None
        message: Message = json.loads(body)
        return message

    def end_request(self, rss: int) -> None:
        self.requests += 1
        self.rss = rss
        self.between_requests = True

    def lost(self, reason: str) -> ChildLost:
        """Returns the exception for an error that the child reported."""
        if reason == "memory":
            return self._too_much()
        return ChildLost(f"failed: {reason}", FailureCode.INTERNAL, "see the log")

    def interrupt(self) -> None:
        """Kills the child; a pending `receive` raises ChildLost."""
        self.interrupted = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def kill(self) -> None:
        """Kills the child; returns once it has ended."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._drain

    async def _why_ended(self) -> ChildLost:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), 5)
        await self.kill()
        code = self._process.returncode or 0
        if any(sign in self._errors for sign in _NO_MEMORY):
            return self._too_much()
        if -code == signal.SIGXCPU:
            return ChildLost("took more processor time than allowed", FailureCode.TIME)
        if -code == signal.SIGKILL:
            return ChildLost(
                "was ended by the system, probably because it lacked memory",
                FailureCode.MEMORY,
                "free some, then retry it",
            )
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return ChildLost(f"crashed ({how})", FailureCode.CRASH, "the file may be damaged: save it again, or exclude it")

    def _too_much(self) -> ChildLost:
        return ChildLost(f"needed more than {self._memory_bytes // MIB:,} MiB of memory", FailureCode.MEMORY)

    async def _read_errors(self) -> None:
        """Keeps the end of the child's stderr. Reads continuously, so that the child never blocks when it writes to stderr."""
        pipe = self._process.stderr
        assert pipe is not None
        while chunk := await pipe.read(_STDERR_KEPT):
            self._errors = (self._errors + chunk)[-_STDERR_KEPT:]


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """Limits of one child: `memory_bytes` of address space, and `timeout_s` seconds per message.

    A child is replaced after `recycle_after` requests, or when its resident memory exceeds `recycle_rss_bytes`.
    """

    memory_bytes: int = 1024 * MIB
    timeout_s: float = 60.0
    recycle_after: int = 2_000
    recycle_rss_bytes: int = 256 * MIB


class Children:
    """All child processes, and which of them are idle. Use on one event loop."""

    def __init__(self, limits: ChildLimits) -> None:
        self.limits = limits
        self.closed = False
        self._idle: list[Child] = []
        self.all: set[Child] = set()
        self._first: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the first child without waiting for it. Other children are started when no child is idle."""
        self._first = asyncio.create_task(self._start_first())

    async def close(self) -> None:
        """Kills all children; requests in progress fail."""
        self.closed = True
        if self._first is not None:
            self._first.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._first
        await asyncio.gather(*(child.kill() for child in tuple(self.all)))
        self._idle.clear()
        self.all.clear()

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the children."""
        return tuple(child.pid for child in self.all)

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Child]:
        """Provides a child for exclusive use. The child is reused only if its response was read completely."""
        child = await self._ready_child()
        try:
            yield child
        finally:
            if child.between_requests and not (self.closed or child.interrupted or self._is_worn(child)):
                self._idle.append(child)
            else:
                self.all.discard(child)
                await asyncio.shield(child.kill())

    async def _ready_child(self) -> Child:
        if self._first is not None and not self._first.done():
            await asyncio.shield(self._first)
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            self.all.discard(child)
            await child.kill()
        return await self._start()

    def _is_worn(self, child: Child) -> bool:
        return child.requests >= self.limits.recycle_after or child.rss >= self.limits.recycle_rss_bytes

    async def _start_first(self) -> None:
        with contextlib.suppress(ChildLost):  # the next request tries again and gets the error
            self._idle.append(await self._start())  # without a place, because a run with a place may wait for this

    async def _start(self) -> Child:
        if self.closed:
            raise ChildLost("was cancelled, because the parsers were stopped", FailureCode.OTHER, "")
        child = await Child.start(self.limits.memory_bytes, self.limits.timeout_s)
        self.all.add(child)
        return child
