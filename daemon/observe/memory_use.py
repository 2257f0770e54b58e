"""How much memory the process holds that the system cannot drop, and when a limit would be reached."""

import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

STATUS = Path("/proc/self/status")

COUNTED_PASSAGES = 1_000
"""Passages from which on memory is told by the passage: below, what queries and commits borrow is more."""

WINDOW_S = 600.0
"""The present rate is that of the last ten minutes."""

SAMPLE_S = 10.0
"""How often passages are counted for the rate."""


def anonymous_bytes(status: Path = STATUS) -> int:
    """Memory without a file behind it, in memory and in swap: all that the system cannot drop. 0 where it does not say."""
    found = dict.fromkeys(("RssAnon", "VmSwap"), 0)
    try:
        lines = status.read_text("ascii", errors="replace").splitlines()
    except OSError:
        return 0
    for line in lines:
        name, _, value = line.partition(":")
        if name in found:
            found[name] = int(value.split()[0]) * KIB
    return sum(found.values())


def shown(size: float) -> str:
    """`5.70 GiB`, `612 MiB`."""
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """`used` and `limit` (None: there is none) in bytes. `bytes_per_passage`, `room_passages` and `full_in_s` are None where
    they cannot be told: the last where the memory does not grow."""

    used: int
    limit: int | None = None
    bytes_per_passage: int | None = None
    room_passages: int | None = None
    full_in_s: float | None = None


class MemoryForecast:
    """Tells from what the process holds, and how many passages there are, how many more there is room for."""

    def __init__(self, before: int) -> None:
        """`before`: bytes that the process held before it opened the store."""
        self._before = before
        self._counted: deque[tuple[float, int]] = deque()

    def use(self, used: int, limit: int | None, passages: int, now: float | None = None) -> MemoryUse:
        """`limit`: the bytes at which no more is taken. `now` in seconds of a clock that only goes forward."""
        now = time.monotonic() if now is None else now
        rate = self._rate(passages, now)
        if passages < COUNTED_PASSAGES:
            return MemoryUse(used, limit)
        each = max(used - self._before, 0) // passages
        if limit is None or not each:
            return MemoryUse(used, limit, each or None)
        room = max(limit - used, 0) // each
        return MemoryUse(used, limit, each, room, room / rate if rate > 0 else None)

    def _rate(self, passages: int, now: float) -> float:
        """Passages a second that the memory grew by in the last `WINDOW_S`; negative where it shrank."""
        if not self._counted or now - self._counted[-1][0] >= SAMPLE_S:
            self._counted.append((now, passages))
        while now - self._counted[0][0] > WINDOW_S:
            self._counted.popleft()
        began, before = self._counted[0]
        return (passages - before) / (now - began) if now - began >= SAMPLE_S else 0.0
