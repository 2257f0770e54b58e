"""Decides whether a resource grew while the number of documents was constant.

Resources rise and fall with commits, checkpoints and maintenance. Therefore each twelfth of the phase is represented by its
minimum, and the medians of the first and the last third are compared. Growth counts only as far as it exceeds the scatter of
these minima, so a short phase finds only large leaks. The report contains the scatter, the smallest detectable growth.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.support.soak.samples import Sample

MOST_PER_HOUR = 0.01
BLOCKS = 12
BLOCK_MIN_S = 30.0
RESOURCES = ("resident", "anonymous", "descriptors", "threads", "disk")
MEDIAN_ERROR = 1.2533
"""Standard error of a median relative to that of a mean, for normally distributed values."""
DEVIATIONS = 2.0


@dataclass(frozen=True)
class Growth:
    """Relative growth of a resource per hour. Growth below `scatter` may be chance."""

    resource: str
    per_hour: float
    scatter: float

    @property
    def broken(self) -> bool:
        return self.per_hour - self.scatter > MOST_PER_HOUR

    def __str__(self) -> str:
        return f"{self.resource} {self.per_hour:+.1%} per hour (± {self.scatter:.1%})"


def minima(samples: Sequence[Sample], resource: str) -> list[tuple[float, float]]:
    """Returns the time and the minimum of each of `BLOCKS` blocks of equal length; [] if the blocks would be too short."""
    begin, end = (samples[0].at, samples[-1].at) if samples else (0.0, 0.0)
    length = (end - begin) / BLOCKS
    if length < BLOCK_MIN_S:
        return []
    blocks: dict[int, list[tuple[float, float]]] = {}
    for sample in samples:
        number = min(int((sample.at - begin) / length), BLOCKS - 1)
        blocks.setdefault(number, []).append((sample.at, float(getattr(sample, resource))))
    return [min(block, key=lambda each: each[1]) for _, block in sorted(blocks.items())]


def growth(samples: Sequence[Sample], resource: str) -> Growth | None:
    """Returns the growth during `samples`, all from one run of the daemon; None if there are too few samples."""
    blocks = minima(samples, resource)
    third = len(blocks) // 3
    if third < 2:
        return None
    first, last = blocks[:third], blocks[-third:]
    values = [[value for _, value in part] for part in (first, last)]
    hours = (statistics.mean(at for at, _ in last) - statistics.mean(at for at, _ in first)) / 3600
    before, after = map(statistics.median, values)
    error = MEDIAN_ERROR * sum(statistics.variance(part) / len(part) for part in values) ** 0.5
    scale = max(before, 1.0) * hours
    return Growth(resource, (after - before) / scale, DEVIATIONS * error / scale)


def growths(samples: Sequence[Sample]) -> list[Growth]:
    return [found for resource in RESOURCES if (found := growth(samples, resource)) is not None]
