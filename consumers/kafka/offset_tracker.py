"""Tracks which messages of a partition are committed. The position to store is the offset of the first uncommitted
message."""

import threading
from collections import Counter, deque
from collections.abc import Collection


class InFlight:
    """Counts the messages that have arrived and are not committed yet, and their bytes. Thread-safe."""

    def __init__(self, max_messages: int = 4000, max_bytes: int = 64 * 1024 * 1024) -> None:
        self.limits = (max_messages, max_bytes)
        self.counts = (0, 0)
        """Messages and bytes in flight."""
        self._lock = threading.Lock()
        self._paused = False

    def add(self, size: int, messages: int = 1) -> None:
        with self._lock:
            count, total = self.counts
            self.counts = count + messages, total + size

    def remove(self, size: int, messages: int = 1) -> None:
        self.add(-size, -messages)

    def should_pause(self) -> bool:
        """Whether fetching must pause. A pause begins when a limit is exceeded and ends when both counts are at most
        half of their limits. For the fetching thread."""
        share = max(count / limit for count, limit in zip(self.counts, self.limits, strict=True))
        self._paused = share > (0.5 if self._paused else 1.0)
        return self._paused


class OffsetTracker:
    """The uncommitted messages of one partition, in order. A message stays until it and all messages before it are
    committed.

    `offset` is the offset of the first uncommitted message. `key` identifies the partition among the store's positions. For
    one thread.
    """

    def __init__(self, key: str, offset: int, in_flight: InFlight) -> None:
        self.key = key
        self.offset = offset
        self.retired = False
        """True once the topic was created again: its old offsets are invalid and no longer stored."""
        self.disowned = False
        """True once the group has reassigned the partition, even if to this member."""
        self._in_flight = in_flight
        self._pending: deque[MessageAcknowledgement] = deque()

    def add(self, offset: int, size: int = 0) -> "MessageAcknowledgement":
        """Adds a message, which must come after all messages added before."""
        message = MessageAcknowledgement(self, offset, size)
        self._pending.append(message)
        return message

    @property
    def pending(self) -> int:
        """Number of messages at and after `offset` that have arrived."""
        return len(self._pending)

    @property
    def all_counted(self) -> bool:
        """Whether the number of documents is known for every message that has arrived."""
        return all(message.parts_left is not None for message in self._pending)

    def positions(self, parts: Collection[object]) -> dict[str, dict[str, int]]:
        """Returns the position to store with a commit. `parts` are the acknowledgements in this partition that the commit
        completes, one per document."""
        counts = Counter(parts)
        reached = self.offset
        for message in self._pending:
            if message.parts_left is None or message.parts_left > counts[message]:
                break
            reached = message.offset + 1
        return {self.key: {"offset": reached}} if reached != self.offset and not self.retired else {}

    def dropped(self, message: "MessageAcknowledgement") -> None:
        """Records that `message` will not be processed. The offset stays before the message."""
        self._in_flight.remove(message.size)

    def release_bytes(self, message: "MessageAcknowledgement") -> None:
        """Stops counting the message's bytes as in flight: its documents are held and limited elsewhere."""
        self._in_flight.remove(message.size, messages=0)
        message.size = 0

    def completed(self, message: "MessageAcknowledgement") -> None:
        """Records that all documents of `message` are committed, and moves `offset` to the next uncommitted message."""
        self._in_flight.remove(message.size)
        while self._pending and self._pending[0].parts_left == 0:
            self.offset = self._pending.popleft().offset + 1


class MessageAcknowledgement:
    """The acknowledgement of one message. Each of the message's documents carries the acknowledgement through the
    pipeline."""

    __slots__ = ("offset", "parts_left", "size", "tracker")

    def __init__(self, tracker: OffsetTracker, offset: int, size: int) -> None:
        self.tracker = tracker
        self.offset = offset
        self.size = size
        self.parts_left: int | None = None
        """Number of the message's uncommitted documents; None until they are counted."""

    def drop(self) -> None:
        """Records that the message will not be processed here."""
        self.tracker.dropped(self)

    def done(self) -> None:
        """Records that one more document of the message is committed."""
        if self.parts_left:
            self.parts_left -= 1
            if self.parts_left == 0:
                self.tracker.completed(self)
