"""Counts the work of a queue since it was last empty, to report progress."""

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Burst:
    """`done` counts the items that have left the queue since `began` (monotonic time)."""

    began: float = field(default_factory=time.monotonic)
    done: int = 0
