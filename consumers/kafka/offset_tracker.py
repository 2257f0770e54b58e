"""How far a partition's messages are committed, without a gap: the offset that may be stored."""

from collections import Counter, deque
from collections.abc import Collection


class InFlight:
    """How many messages have arrived and are not committed, and how many bytes they have.

    `add` is for the thread that fetches, `remove` for the one that commits: each writes counts of its own.
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

    @property
    def counts(self) -> tuple[int, int]:
        """Messages and bytes in flight."""
        return self._added[0] - self._removed[0], self._added[1] - self._removed[1]

    def should_pause(self) -> bool:
        """True from when either limit is passed until half of both is free again. For the fetching thread."""
        share = max(count / limit for count, limit in zip(self.counts, self.limits, strict=True))
        self._paused = share > (0.5 if self._paused else 1.0)
        return self._paused


class OffsetTracker:
    """A partition's messages in their order, each from its arrival until it and all before it are committed.

    `offset` is the first one that is not committed; `key` is its name among the store's positions. For one thread.
    """

    def __init__(self, key: str, offset: int, in_flight: InFlight) -> None:
        self.key = key
        self.offset = offset
        self.retired = False
        """True once the offsets mean something else, as the topic was made anew: nothing of it is stored any more."""
        self._in_flight = in_flight
        self._pending: deque[MessageAcknowledgement] = deque()

    def add(self, offset: int, size: int = 0) -> "MessageAcknowledgement":
        """A message has arrived, after all that have arrived before."""
        message = MessageAcknowledgement(self, offset, size)
        self._pending.append(message)
        return message

    @property
    def pending(self) -> int:
        """Messages that have arrived and are not behind `offset`."""
        return len(self._pending)

    def positions(self, parts: Collection[object]) -> dict[str, dict[str, int]]:
        """What to store with a commit that completes `parts`: messages of this partition, once for each document."""
        counts = Counter(parts)
        reached = self.offset
        for message in self._pending:
            if message.parts_left is None or message.parts_left > counts[message]:
                break
            reached = message.offset + 1
        return {self.key: {"offset": reached}} if reached != self.offset and not self.retired else {}

    def completed(self, message: "MessageAcknowledgement") -> None:
        """All parts of `message` are committed: moves `offset` over what is committed without a gap."""
        self._in_flight.remove(message.size)
        while self._pending and self._pending[0].parts_left == 0:
            self.offset = self._pending.popleft().offset + 1


class MessageAcknowledgement:
    """One message, under way. The pipeline carries it with each of the message's documents."""

    __slots__ = ("offset", "parts_left", "size", "tracker")

    def __init__(self, tracker: OffsetTracker, offset: int, size: int) -> None:
        self.tracker = tracker
        self.offset = offset
        self.size = size
        self.parts_left: int | None = None
        """How many of its documents are not committed; None until they are counted."""

    def done(self) -> None:
        """One more of its documents is committed."""
        if self.parts_left:
            self.parts_left -= 1
            if self.parts_left == 0:
                self.tracker.completed(self)
