"""Limits for the queues of the pipeline, so that documents arriving faster than they are indexed do not fill the memory."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Limits of `[daemon]`. The inbox contains added documents that are not indexed; the queue, parsed passages that are not
    committed."""

    inbox_documents: int = 100_000
    inbox_bytes: int = 256 * MIB
    queue_passages: int = 768
    queue_bytes: int = 64 * MIB


DEFAULT_QUEUE_LIMITS = QueueLimits()


class Capacity:
    """A number of items and of bytes, each with a limit. Use on the event loop only."""

    def __init__(self, items: int, bytes: int) -> None:
        self.limits = (items, bytes)
        self.items = 0
        self.bytes = 0

    @property
    def free(self) -> bool:
        """Whether both counts are below their limits."""
        return self.items < self.limits[0] and self.bytes < self.limits[1]

    def fits(self, items: int, bytes: int, share: float = 1.0) -> bool:
        """Returns whether this much more is within `share` of both limits.

        If the queue is empty, anything fits, so that no large item waits forever.
        """
        within = self.items + items <= self.limits[0] * share and self.bytes + bytes <= self.limits[1] * share
        return within or not self.items

    def take(self, items: int, bytes: int) -> None:
        """Adds this much, whether it fits or not."""
        self.items += items
        self.bytes += bytes

    def release(self, items: int, bytes: int) -> None:
        self.items -= items
        self.bytes -= bytes


@dataclass(slots=True)
class Burst:
    """`done` counts the items that have left the queue since `began` (monotonic time)."""

    began: float = field(default_factory=time.monotonic)
    done: int = 0


async def until_idle(busy: Callable[[], bool], check_s: float, max_wait_s: float) -> None:
    """Returns when other work has ended, or after `max_wait_s`: a machine may never be idle."""
    waited_s = 0.0
    while busy() and waited_s < max_wait_s:
        await asyncio.sleep(check_s)
        waited_s += check_s
