"""Limits of the pipeline's queues, so that documents arriving faster than they are indexed do not fill the RAM."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Limits of `[daemon]`. The inbox contains added documents that are not indexed yet; the queue contains parsed passages
    that are not committed yet."""

    inbox_documents: int = 100_000
    inbox_bytes: int = 256 * MIB
    queue_passages: int = 768
    queue_bytes: int = 64 * MIB


DEFAULT_QUEUE_LIMITS = QueueLimits()


class Capacity:
    """A number of items and a number of bytes, each with a limit. Use on the event loop only."""

    def __init__(self, items: int, bytes: int) -> None:
        self.limits = (items, bytes)
        self.items = 0
        self.bytes = 0

    @property
    def free(self) -> bool:
        """Whether the items and the bytes are below their limits."""
        return self.items < self.limits[0] and self.bytes < self.limits[1]

    def fits(self, items: int, bytes: int, share: float = 1.0) -> bool:
        """Returns whether `items` and `bytes` more stay within `share` of both limits.

        Every item fits into an empty queue, so that no large item waits forever.
        """
        within = self.items + items <= self.limits[0] * share and self.bytes + bytes <= self.limits[1] * share
        return within or not self.items

    def take(self, items: int, bytes: int) -> None:
        """Adds `items` and `bytes`, even if they exceed the limits."""
        self.items += items
        self.bytes += bytes

    def release(self, items: int, bytes: int) -> None:
        self.items -= items
        self.bytes -= bytes


@dataclass(slots=True)
class Burst:
    """A period in which a queue is never empty; `done` counts the items that left the queue since `began` (monotonic time)."""

    began: float = field(default_factory=time.monotonic)
    done: int = 0


async def until_idle(busy: Callable[[], bool], check_s: float, max_wait_s: float) -> None:
    """Returns once `busy` is false, or after `max_wait_s`, because a machine may never be idle."""
    waited_s = 0.0
    while busy() and waited_s < max_wait_s:
        await asyncio.sleep(check_s)
        waited_s += check_s
