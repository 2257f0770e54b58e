"""A queue's work from the moment it was last empty: what its progress is measured by."""

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Burst:
    """`done` counts what has left the queue since `began` (on the monotonic clock)."""

    began: float = field(default_factory=time.monotonic)
    done: int = 0
