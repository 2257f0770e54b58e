"""How much memory the process holds that the system cannot drop, and when a limit would be reached."""

import time
from collections import deque
from pathlib import Path
from statistics import correlation, linear_regression

from daemon.contract.status import MemoryUse

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

STATUS = Path("/proc/self/status")

TREND_STEP_PASSAGES = 250
"""Between two samples of memory by passages."""
TREND_SAMPLES_MIN, TREND_SAMPLES_MAX = 5, 64
TREND_CORRELATION_MIN = 0.9
"""Of memory and passages. Below it, what queries, caches and commits borrow hides what a passage takes."""

WINDOW_S = 600.0
"""The present rate is that of the last ten minutes."""
IDLE_S = 60.0
"""A memory without a new passage for this long does not grow."""

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


class MemoryForecast:
    """Tells from what the process holds, as passages come, how many more there is room for."""

    def __init__(self) -> None:
        self._counted: deque[tuple[float, int]] = deque()
        self._trend: deque[tuple[int, int]] = deque(maxlen=TREND_SAMPLES_MAX)
        """Passages, and bytes in use, while passages come."""

    def use(self, used: int, limit: int | None, passages: int, now: float | None = None) -> MemoryUse:
        """`limit`: the bytes at which no more is taken. `now` in seconds of a clock that only goes forward."""
        now = time.monotonic() if now is None else now
        rate = self._rate(passages, now)
        each = self._bytes_per_passage(used, passages)
        if limit is None or each is None:
            return MemoryUse(used_bytes=used, limit_bytes=limit, bytes_per_passage=each)
        room = max(limit - used, 0) // each
        full_in_s = room / rate if rate > 0 else None
        return MemoryUse(
            used_bytes=used, limit_bytes=limit, bytes_per_passage=each, room_passages=room, full_in_s=full_in_s
        )

    def _bytes_per_passage(self, used: int, passages: int) -> int | None:
        """How much memory each further passage takes, None where no trend shows it."""
        if self._trend and passages < self._trend[-1][0]:
            self._trend.clear()  # passages were removed, and memory is given back later
        if not self._trend or passages - self._trend[-1][0] >= TREND_STEP_PASSAGES:
            self._trend.append((passages, used))
        if len(self._trend) < TREND_SAMPLES_MIN:
            return None
        counts, sizes = zip(*self._trend, strict=True)
        if min(sizes) == max(sizes) or correlation(counts, sizes) < TREND_CORRELATION_MIN:
            return None
        return max(int(linear_regression(counts, sizes).slope), 1)

    def _rate(self, passages: int, now: float) -> float:
        """Passages a second that the memory grew by in the last `WINDOW_S`; negative where it shrank, 0 where it is idle."""
        if not self._counted or now - self._counted[-1][0] >= SAMPLE_S:
            self._counted.append((now, passages))
        while now - self._counted[0][0] > WINDOW_S:
            self._counted.popleft()
        began, before = self._counted[0]
        lately = next((count for at, count in self._counted if now - at <= IDLE_S), passages)
        idle = now - began > IDLE_S and passages <= lately
        return (passages - before) / (now - began) if now - began >= SAMPLE_S and not idle else 0.0
