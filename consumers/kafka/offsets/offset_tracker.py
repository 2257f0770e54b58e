"""Tracks which messages of a partition are committed, and so the offset that may be stored: the first gap."""

from collections import Counter, deque
from collections.abc import Collection


class InFlight:
    """Counts the messages that have arrived and are not committed yet, and their bytes.

    The fetching thread calls `add`, the committing one `remove`. Each writes counts of its own, so no lock is needed.
    """

    def __init__(self, max_messages: int = 4000, max_bytes: int = 64 * 1024 * 1024) -> None:
        self.limits = (max_messages, max_bytes)
        self._added = [0, 0]
        self._removed = [0, 0]
        self._paused = False

    def add(self, size: int) -> None:
        self._added[0] += 1
        self._added[1] += size

    def remove(self, size: int) -> None:
        self._removed[0] += 1
        self._removed[1] += size

    def remove_bytes(self, size: int) -> None:
        self._removed[1] += size

    @property
    def counts(self) -> tuple[int, int]:
        """Messages and bytes in flight."""
        return self._added[0] - self._removed[0], self._added[1] - self._removed[1]

    def should_pause(self) -> bool:
        """True once either limit is exceeded, until half of both is free again. For the fetching thread."""
        share = max(count / limit for count, limit in zip(self.counts, self.limits, strict=True))
        self._paused = share > (0.5 if self._paused else 1.0)
        return self._paused


class OffsetTracker:
    """The messages of one partition, in order. Each stays until it and all before it are committed.

    `offset` is that of the first message that is not committed. `key` names the partition among the store's positions.
    For one thread.
    """

    def __init__(self, key: str, offset: int, in_flight: InFlight) -> None:
        self.key = key
        self.offset = offset
        self.retired = False
        """True once the topic was made anew: its old offsets mean nothing, and none is stored any more."""
        self.disowned = False
        """True once the group has given the partition to another member, or anew to this one."""
        self._in_flight = in_flight
        self._pending: deque[MessageAcknowledgement] = deque()

    def add(self, offset: int, size: int = 0) -> "MessageAcknowledgement":
        """Takes in a message; it comes after all messages added before."""
        message = MessageAcknowledgement(self, offset, size)
        self._pending.append(message)
        return message

    @property
    def pending(self) -> int:
        """How many messages have arrived and are not passed by `offset`."""
        return len(self._pending)

    @property
    def all_counted(self) -> bool:
        """Whether the documents of every message that has arrived are counted."""
        return all(message.parts_left is not None for message in self._pending)

    def positions(self, parts: Collection[object]) -> dict[str, dict[str, int]]:
        """What to store with a commit that completes `parts`: acknowledgements of this partition, one per document."""
        counts = Counter(parts)
        reached = self.offset
        for message in self._pending:
            if message.parts_left is None or message.parts_left > counts[message]:
                break
            reached = message.offset + 1
        return {self.key: {"offset": reached}} if reached != self.offset and not self.retired else {}

    def dropped(self, message: "MessageAcknowledgement") -> None:
        """Nothing will be done for `message`; the offset stays before it."""
        self._in_flight.remove(message.size)

    def unburden(self, message: "MessageAcknowledgement") -> None:
        """The message's bytes count no more as in flight: they are held elsewhere, and limited there."""
        self._in_flight.remove_bytes(message.size)
        message.size = 0

    def completed(self, message: "MessageAcknowledgement") -> None:
        """All documents of `message` are committed: moves `offset` to the next message that is not."""
        self._in_flight.remove(message.size)
        while self._pending and self._pending[0].parts_left == 0:
            self.offset = self._pending.popleft().offset + 1


class MessageAcknowledgement:
    """The acknowledgement of one message. The pipeline carries it with each of the message's documents."""

    __slots__ = ("offset", "parts_left", "size", "tracker")

    def __init__(self, tracker: OffsetTracker, offset: int, size: int) -> None:
        self.tracker = tracker
        self.offset = offset
        self.size = size
        self.parts_left: int | None = None
        """How many of the message's documents are not committed; None until they are counted."""

    def drop(self) -> None:
        """Says that the message is not worked on here."""
        self.tracker.dropped(self)

    def done(self) -> None:
        """Says that one more document of the message is committed."""
        if self.parts_left:
            self.parts_left -= 1
            if self.parts_left == 0:
                self.tracker.completed(self)
