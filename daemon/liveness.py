"""Whether every part of the daemon moves: what the watchdog is fed by, and what `stuck` in the log tells.

A part is the event loop (which feeds the watchdog itself, so that a loop that hangs feeds nothing), the pipeline's tasks,
the thread that encodes and commits, the threads that answer queries, and the socket. Waiting for something outside that
has a time limit of its own (a server's embeddings, a full disk that is tried again) is not being stuck.
"""

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parent.parent
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: hippod\r\nConnection: close\r\n\r\n"

BUSY_S = 3_600.0
"""No batch and no query takes an hour of the processor, on the slowest machine."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A part that has not moved for `seconds`; `at` says where its thread stands, innermost last, where it has one."""

    part: str
    seconds: float
    at: tuple[str, ...] = ()


class Part(Protocol):
    """One thing that must move."""

    name: str

    def moved_at(self, now: float) -> float:
        """When it last moved (monotonic seconds), as far as is known at `now`."""
        ...

    def at(self) -> tuple[str, ...]: ...


class Thread:
    """A thread that works step by step. It moves while it has nothing to do, begins a step, or uses the processor; but one
    that has used it for `BUSY_S` in a single step goes round in circles."""

    def __init__(self, name: str, thread: str, step: Callable[[], object | None]) -> None:
        """`thread` is how its name begins; `step` says what it is at, another value for each step, None when it rests."""
        self.name = name
        self._thread = thread
        self._step = step
        self._seen: tuple[object | None, int] = (None, -1)
        self._moved = self._began = time.monotonic()

    def moved_at(self, now: float) -> float:
        step = self._step()
        seen = (step, self._ticks())
        if step is None or step != self._seen[0]:
            self._moved = self._began = now
        elif seen != self._seen and now - self._began < BUSY_S:
            self._moved = now
        self._seen = seen
        return self._moved

    def at(self) -> tuple[str, ...]:
        thread = self._found()
        frame = sys._current_frames().get(thread.ident or 0) if thread is not None else None
        if frame is None:
            return ()
        # Places alone: a line of ours never holds what a document says.
        return tuple(
            f"{_short(each.filename)}:{each.lineno} {each.name}" for each in traceback.extract_stack(frame)[-8:]
        )

    def _found(self) -> threading.Thread | None:
        return next((each for each in threading.enumerate() if each.name.startswith(self._thread)), None)

    def _ticks(self) -> int:
        """Processor time of the thread so far, in clock ticks; -1 where the system does not tell."""
        thread = self._found()
        try:
            stat = Path(f"/proc/self/task/{thread.native_id if thread else 0}/stat").read_text()
        except OSError:
            return -1
        fields = stat.rpartition(")")[2].split()  # the name before may hold spaces
        return int(fields[11]) + int(fields[12])


class Probe:
    """Something that is asked again and again and moves with each answer."""

    def __init__(self, name: str, ask: Callable[[], Awaitable[object]], pause_s: float) -> None:
        """`ask` returns when the part moves, or raises OSError when it cannot be reached. It is asked `pause_s` after each
        answer."""
        self.name = name
        self._ask = ask
        self._pause_s = pause_s
        self._moved = time.monotonic()

    def moved_at(self, now: float) -> float:  # noqa: ARG002 - the protocol's
        return self._moved

    def at(self) -> tuple[str, ...]:
        return ()

    async def run(self) -> None:
        """Asks until cancelled."""
        while True:
            with suppress(OSError, EOFError):
                await self._ask()
                self._moved = time.monotonic()
            await asyncio.sleep(self._pause_s)


class Liveness:
    """All parts together."""

    def __init__(self, parts: list[Part], allowed_s: float) -> None:
        """A part may stand still for `allowed_s` seconds."""
        self.parts = parts
        self._allowed_s = allowed_s

    def stuck(self) -> list[Stuck]:
        """The parts that have stood still for longer; empty while all is well."""
        now = time.monotonic()
        still = [(part, now - part.moved_at(now)) for part in self.parts]
        return [Stuck(part.name, seconds, part.at()) for part, seconds in still if seconds > self._allowed_s]


async def answers(path: str, request: bytes = HEALTH, ours: bool = True) -> int | None:
    """The status with which the API on the Unix socket answers; OSError or EOFError where it does not.

    None where nothing can be said: the socket's mode shuts out the daemon's own user too, or its file is gone and is not
    `ours` but the service manager's, which another hippod would be given just so.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except PermissionError:
        return None
    except (FileNotFoundError, ConnectionRefusedError):
        if ours:
            raise
        return None
    try:
        writer.write(request)
        line = await reader.readline()
    finally:
        writer.close()
    if not line.startswith(b"HTTP/1.1 "):
        raise EOFError("closed without an answer")
    return int(line.split()[1])


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else "/".join(path.parts[-2:])
