"""Drops repeated warnings and errors, so that they cannot fill the disk.

Lines are of the same kind if logger, level, event, type of exception and text fields are the same. Digits in text fields are
ignored, except in `NAMES`. The first `LINES` lines of a kind are logged. The last of these contains the number of seconds for
which further lines are dropped (`muted_s`). Then at most one line per period is logged, with the number of dropped lines
before it (`left_out`). The limit ends after a period in which no line was dropped.
"""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from structlog.typing import EventDict, WrappedLogger

from daemon.observe.redaction import raised_at, system_error

LINES = 10
PERIOD_S = 60.0
MAX_KINDS = 4096
"""Maximum number of remembered kinds; beyond it, the oldest kind is dropped."""

LEVELS = frozenset({"warning", "error", "critical", "exception"})
NAMES = frozenset({"uri", "passage", "source", "session", "client", "address"})
"""Fields that identify the subject of a line; lines with different values of such a field are of different kinds."""

_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class _Kind:
    since: float
    """Monotonic time at which the kind's period began."""
    allowed: int
    logged: int = 0
    left_out: int = 0


class RepeatedLines:
    """A processor of structlog; may be used from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: dict[tuple[object, ...], _Kind] = {}
        self._lock = threading.RLock()  # reentrant, because a finalizer may log at any time

    def __call__(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        """Raises DropEvent to drop the line."""
        if event.get("level", method) not in LEVELS:
            return event
        now, key = self._clock(), _key(event)
        with self._lock:
            return self._counted(event, now, key)

    def _counted(self, event: EventDict, now: float, key: tuple[object, ...]) -> EventDict:
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= MAX_KINDS:
                del self._kinds[next(iter(self._kinds))]
            kind = self._kinds[key] = _Kind(now, LINES)
        elif now - kind.since >= PERIOD_S:
            again = kind.left_out > 0 and now - kind.since < 2 * PERIOD_S
            if kind.left_out:
                event["left_out"] = kind.left_out
            kind = self._kinds[key] = _Kind(now, 1 if again else LINES)
        if kind.logged >= kind.allowed:
            kind.left_out += 1
            raise structlog.DropEvent
        kind.logged += 1
        if kind.logged == kind.allowed:
            event["muted_s"] = round(PERIOD_S - (now - kind.since))
        return event


def _key(event: EventDict) -> tuple[object, ...]:
    parts: list[object] = []
    for name, value in sorted(event.items()):
        if isinstance(value, BaseException):
            parts.append((name, type(value), raised_at(value), system_error(value)))
        elif isinstance(value, str) and name != "time":
            parts.append((name, value if name in NAMES else _DIGITS.sub("0", value)))
    return tuple(parts)
