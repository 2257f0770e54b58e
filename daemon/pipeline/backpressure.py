"""How much may wait at each door of the pipeline, so that what comes faster than it is indexed fills no memory."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """`[daemon]`: the inbox holds what was handed in and is not indexed, the queue passages that are read and not committed."""

    inbox_documents: int = 100_000
    inbox_bytes: int = 256 * MIB
    queue_passages: int = 768
    queue_bytes: int = 64 * MIB


DEFAULT_QUEUE_LIMITS = QueueLimits()


class Capacity:
    """Two counts with a limit each, on one event loop."""

    def __init__(self, items: int, bytes: int) -> None:
        self.most = (items, bytes)
        self.items = 0
        self.bytes = 0

    @property
    def free(self) -> bool:
        """Whether neither limit is reached."""
        return self.items < self.most[0] and self.bytes < self.most[1]

    def holds(self, items: int, bytes: int) -> bool:
        """Whether that much more has room. What could never have gets in when it is alone: who waits does not wait for ever."""
        fits = self.items + items <= self.most[0] and self.bytes + bytes <= self.most[1]
        return fits or not self.items

    def take(self, items: int, bytes: int) -> None:
        """Counts that much more, room or not."""
        self.items += items
        self.bytes += bytes

    def give(self, items: int, bytes: int) -> None:
        self.items -= items
        self.bytes -= bytes
