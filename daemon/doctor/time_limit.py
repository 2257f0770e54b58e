"""Limits the time of checks, so that a check that hangs does not hold back the findings of other checks."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Thread

from daemon.contract.finding import Finding, guarded

NamedCheck = tuple[str, Callable[[], Iterable[Finding]]]


def findings_within(limit_s: float, checks: Sequence[NamedCheck]) -> Iterator[Finding]:
    """Runs the checks concurrently and yields their findings in order. A check that has not finished after `limit_s` seconds
    gets a warning, and continues in a thread that does not delay the end of Python."""
    end = time.monotonic() + limit_s
    started = [(name, _start(name, check)) for name, check in checks]
    for name, found in started:
        try:
            while (finding := found.get(timeout=max(end - time.monotonic(), 0.0))) is not None:
                yield finding
        except Empty:
            hint = "the machine is busy, or a drive or server that this check uses does not answer; try again later"
            yield Finding(name, "warn", f"this check did not finish within {limit_s:g} s", hint)


def _start(name: str, check: Callable[[], Iterable[Finding]]) -> SimpleQueue[Finding | None]:
    """Returns a queue that receives the findings, then None."""
    found: SimpleQueue[Finding | None] = SimpleQueue()

    def run() -> None:
        try:
            for finding in guarded(name, check):
                found.put(finding)
        finally:
            found.put(None)

    Thread(target=run, name=f"check {name}", daemon=True).start()
    return found
