"""How much may wait in each queue of the pipeline, so that what comes faster than it is indexed fills no memory."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """`[daemon]`: the inbox has documents that were added and are not indexed, the queue passages that are read and not
    committed."""

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

    def fits(self, items: int, bytes: int, share: float = 1.0) -> bool:
        """Whether there is room for that much more, within a share of the limits. What is larger fits when nothing else is
        there, so that nobody waits for ever."""
        within = self.items + items <= self.most[0] * share and self.bytes + bytes <= self.most[1] * share
        return within or not self.items

    def take(self, items: int, bytes: int) -> None:
        """Counts that much more, whether it fits or not."""
        self.items += items
        self.bytes += bytes

    def release(self, items: int, bytes: int) -> None:
        self.items -= items
        self.bytes -= bytes
