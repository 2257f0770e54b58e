"""Measures the memory that the system cannot drop, forecasts when it will reach a limit, and measures files on disk."""

import os
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from statistics import correlation, linear_regression

from daemon.contract.status import MemoryUse

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

STATUS = Path("/proc/self/status")

TREND_STEP_PASSAGES = 250
"""Number of new passages between two samples of the memory in use."""
TREND_SAMPLES_MIN, TREND_SAMPLES_MAX = 5, 64
TREND_CORRELATION_MIN = 0.9
"""Minimum correlation of memory and passages for a trend. Below it, temporary memory of queries and commits hides the trend."""

WINDOW_S = 600.0
"""Period over which the rate of new passages is measured."""
IDLE_S = 60.0
"""Time without a new passage after which the rate is 0."""

SAMPLE_S = 10.0
"""Interval at which passages are counted for the rate."""


def anonymous_bytes(status: Path = STATUS) -> int:
    """Returns the bytes of anonymous memory (RssAnon) and swapped memory; 0 if the system does not report them."""
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
    """Formats a number of bytes: `5.70 GiB`, `612 MiB`."""
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"


class MemoryForecast:
    """Forecasts how many more passages fit, from samples of the memory in use while passages are added."""

    def __init__(self) -> None:
        self._counted: deque[tuple[float, int]] = deque()
        self._trend: deque[tuple[int, int]] = deque(maxlen=TREND_SAMPLES_MAX)
        """Samples: (number of passages, bytes in use)."""

    def use(self, used: int, limit: int | None, passages: int, now: float | None = None) -> MemoryUse:
        """Returns the memory use and the forecast. At `limit` bytes, hippod accepts no more passages. `now`: monotonic time in
        s."""
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
        """Returns the bytes of memory that each further passage needs; None without a trend."""
        if self._trend and passages < self._trend[-1][0]:
            self._trend.clear()  # passages were removed; their memory is freed later
        if not self._trend or passages - self._trend[-1][0] >= TREND_STEP_PASSAGES:
            self._trend.append((passages, used))
        if len(self._trend) < TREND_SAMPLES_MIN:
            return None
        counts, sizes = zip(*self._trend, strict=True)
        if min(sizes) == max(sizes) or correlation(counts, sizes) < TREND_CORRELATION_MIN:
            return None
        return max(int(linear_regression(counts, sizes).slope), 1)

    def _rate(self, passages: int, now: float) -> float:
        """Returns the passages added per second in the last `WINDOW_S`: negative if more were removed, 0 if idle."""
        if not self._counted or now - self._counted[-1][0] >= SAMPLE_S:
            self._counted.append((now, passages))
        while now - self._counted[0][0] > WINDOW_S:
            self._counted.popleft()
        began, before = self._counted[0]
        lately = next((count for at, count in self._counted if now - at <= IDLE_S), passages)
        idle = now - began > IDLE_S and passages <= lately
        return (passages - before) / (now - began) if now - began >= SAMPLE_S and not idle else 0.0


def bytes_below(path: Path, ending: str = "") -> int:
    """Returns the bytes of a file, or of all files below a folder; counts only names that end with `ending`.

    Files that disappear meanwhile, or that this user may not access, do not count.
    """
    # os.path.isfile returns False for a file that this user may not access; Path.is_file would raise.
    is_file = os.path.isfile(path)  # noqa: PTH113
    files = [path] if is_file else (Path(top, name) for top, _, names in os.walk(path) for name in names)
    total = 0
    for file in files:
        if file.name.endswith(ending):
            with suppress(OSError):
                total += file.lstat().st_size
    return total
