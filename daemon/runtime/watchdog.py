"""Reports to the service manager's watchdog while all parts of the daemon make progress.

The parts are the event loop, the pipeline's tasks, the thread that encodes and commits, the query threads, and the socket. This
code runs on the event loop, so nothing is reported while the loop hangs. Waiting for an external dependency with its own time
limit (an embedding server, retries on a full disk) counts as progress.
"""

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from daemon.observe.redaction import short_path
from daemon.pipeline.pipeline import Pipeline
from daemon.runtime.service_manager import Notifier

CHECK_INTERVAL_S = 5.0
STALL_LIMIT_S = 120.0
"""Maximum time without progress if no service manager sets a limit."""
STALL_SHARE = 0.75
"""Maximum time without progress, as a share of the service manager's limit, so that time is left for one more check."""
BUSY_STEP_LIMIT_S = 3_600.0
"""Maximum processor time of one step: even on the slowest machine, no batch and no query needs an hour."""
OPENING_STALL_S = 60.0
"""Maximum time without progress while opening; hippod then stops requesting more time from the service manager."""
SLOW_COMMIT_S = 120.0
"""Time after which a batch is logged as slow, repeated every `SLOW_COMMIT_REPEAT_S`."""
SLOW_COMMIT_REPEAT_S = 60.0
STACK_FRAMES = 8

log = structlog.get_logger()


class PipelineEnded(RuntimeError):
    """A permanent task of the daemon has ended, which is a bug. The service manager restarts hippod."""


class ProgressCheck(Protocol):
    """Checks whether one part of the daemon makes progress."""

    name: str
    failure: Exception | None
    """The reason why the part cannot recover in this process; None if it can."""

    def last_progress(self, now: float) -> float:
        """Returns the time of the part's last progress, as known at `now`; both are seconds of `time.monotonic`."""
        ...

    def stack(self) -> tuple[str, ...]:
        """Returns the stack of the part's thread, innermost frame last; empty without a thread."""
        ...


class ThreadCheck:
    """Checks a thread that works step by step. A thread makes progress while it is idle, starts a step, or uses the processor.

    A step that has used `BUSY_STEP_LIMIT_S` of processor time counts as an endless loop.
    """

    failure: Exception | None = None

    def __init__(self, name: str, thread_prefix: str, step: Callable[[], object | None]) -> None:
        """The thread is the first with a name that begins with `thread_prefix`. `step` returns a value that identifies the
        present step; None while the thread is idle."""
        self.name = name
        self._thread_prefix = thread_prefix
        self._step = step
        self._last_seen: tuple[object | None, int] = (None, -1)
        self._last_progress = self._step_began = time.monotonic()

    def last_progress(self, now: float) -> float:
        step = self._step()
        seen = (step, self._cpu_ticks())
        if step is None or step != self._last_seen[0]:
            self._last_progress = self._step_began = now
        elif seen != self._last_seen and now - self._step_began < BUSY_STEP_LIMIT_S:
            self._last_progress = now
        self._last_seen = seen
        return self._last_progress

    def stack(self) -> tuple[str, ...]:
        thread = self._thread()
        frame = sys._current_frames().get(thread.ident or 0) if thread is not None else None
        if frame is None:
            return ()
        # Contains only file, line and function, never a document's text.
        frames = traceback.extract_stack(frame)[-STACK_FRAMES:]
        return tuple(f"{short_path(each.filename)}:{each.lineno} {each.name}" for each in frames)

    def _thread(self) -> threading.Thread | None:
        return next((each for each in threading.enumerate() if each.name.startswith(self._thread_prefix)), None)

    def _cpu_ticks(self) -> int:
        """Returns the thread's processor time in clock ticks; -1 if the system does not report it."""
        thread = self._thread()
        try:
            stat = Path(f"/proc/self/task/{thread.native_id if thread else 0}/stat").read_text()
        except OSError:
            return -1
        fields = stat.rpartition(")")[2].split()  # the thread's name, before the parenthesis, may contain spaces
        return int(fields[11]) + int(fields[12])


class ProbeCheck:
    """Checks a part by calling it repeatedly; each answer counts as progress."""

    def __init__(self, name: str, probe: Callable[[], Awaitable[object]], pause_s: float) -> None:
        """`probe` returns when the part answers, and raises OSError or EOFError if the part cannot be reached. `probe` is
        called again `pause_s` seconds after each answer. Other exceptions become the part's `failure`."""
        self.name = name
        self._probe = probe
        self._pause_s = pause_s
        self._last_answer = time.monotonic()
        self.failure: Exception | None = None

    def last_progress(self, now: float) -> float:  # noqa: ARG002 - required by the protocol
        return self._last_answer

    def stack(self) -> tuple[str, ...]:
        return ()

    async def run(self) -> None:
        """Probes until cancelled, or until a probe sets `failure`."""
        while self.failure is None:
            try:
                await self._probe()
                self._last_answer = time.monotonic()
            except (OSError, EOFError):
                pass
            except Exception as error:  # noqa: BLE001 - `watch` raises it
                self.failure = error
            await asyncio.sleep(self._pause_s)


@dataclass(frozen=True, slots=True)
class Stall:
    """A part without progress for `seconds`, and the stack of its thread."""

    part: str
    seconds: float
    stack: tuple[str, ...] = ()


def stalls(checks: Sequence[ProgressCheck], limit_s: float) -> list[Stall]:
    """Returns the parts without progress for more than `limit_s` seconds."""
    now = time.monotonic()
    idle = [(check, now - check.last_progress(now)) for check in checks]
    return [Stall(check.name, seconds, check.stack()) for check, seconds in idle if seconds > limit_s]


def stall_limit_s(notifier: Notifier) -> float:
    """Returns the maximum time without progress, in seconds."""
    return STALL_LIMIT_S if notifier.watchdog_s is None else notifier.watchdog_s * STALL_SHARE


def check_interval_s(notifier: Notifier) -> float:
    """Returns the interval between checks, in seconds."""
    if notifier.watchdog_s is None:
        return CHECK_INTERVAL_S
    return min(CHECK_INTERVAL_S, notifier.watchdog_s * (1 - STALL_SHARE) / 2)


async def watch(
    stop: asyncio.Task[bool],
    pipeline: Pipeline,
    ended_tasks: Callable[[], Sequence[asyncio.Task[None]]],
    checks: Sequence[ProgressCheck],
    notifier: Notifier,
    status_line: Callable[[], str],
) -> None:
    """Checks all parts until `stop` is done. Raises PipelineEnded, with the cause, if there are `ended_tasks`; the `failure` of
    a check.

    Updates the service manager's status line, and logs when a part stalls or resumes.
    """
    last_status = ""
    stalled: set[str] = set()
    slow_commits = _SlowCommits(pipeline)
    limit_s = stall_limit_s(notifier)
    while not stop.done():
        found = stalls(checks, limit_s)
        for task in ended_tasks():
            reason = None if task.cancelled() else task.exception()
            log.critical(
                "pipeline_ended",
                task=task.get_name(),
                hint="this is a bug; hippod stops so that its supervisor restarts it",
                exc_info=reason,
            )
            raise PipelineEnded(f"a part of hippod ended unexpectedly: {task.get_name()}") from reason
        for failure in (check.failure for check in checks):
            if failure is not None:
                raise failure
        if not found:
            notifier.watchdog()
        for stall in found:
            if stall.part not in stalled:
                log.critical("part_blocked", part=stall.part, took_ms=round(stall.seconds * 1000), at=stall.stack)
        for part in stalled - {stall.part for stall in found}:
            log.warning("part_recovered", part=part)
        stalled = {stall.part for stall in found}
        slow_commits.check()
        status = status_line()
        if stalled:
            status = f"blocked: {', '.join(sorted(stalled))}; {status}"
        if status != last_status:
            notifier.status(status)
            last_status = status
        await asyncio.wait([stop], timeout=check_interval_s(notifier))


async def extend_start(notifier: Notifier, opening: ProgressCheck) -> None:
    """Requests more time for the start while `opening` makes progress, until cancelled."""
    while True:
        now = time.monotonic()
        if now - opening.last_progress(now) < OPENING_STALL_S:
            notifier.extend_timeout(2 * OPENING_STALL_S)
        await asyncio.sleep(CHECK_INTERVAL_S)


class _SlowCommits:
    """Logs batches that take minutes, so that an operator learns of slow hardware or a fault."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._logged_at = -SLOW_COMMIT_REPEAT_S

    def check(self) -> None:
        since, now = self._pipeline.committer.busy_since, time.monotonic()
        if since is not None and now - since > SLOW_COMMIT_S and now - self._logged_at >= SLOW_COMMIT_REPEAT_S:
            self._logged_at = now
            log.warning("commit_slow", took_ms=round((now - since) * 1000), pending=len(self._pipeline.intake))
