"""How far a partition's messages are committed, without a gap: the position that may be stored."""

from collections import Counter, deque
from collections.abc import Iterable, Mapping


class Backlog:
    """How much has arrived and is not done. `arrive` is for the thread that fetches, `leave` for the one that commits."""

    def __init__(self, most: int = 4000, most_bytes: int = 64 * 1024 * 1024) -> None:
        self._most = (most, most_bytes)
        self._arrived = [0, 0]
        self._left = [0, 0]
        self._resting = False

    def arrive(self, size: int) -> None:
        self._arrived[0] += 1
        self._arrived[1] += size

    def leave(self, size: int) -> None:
        self._left[0] += 1
        self._left[1] += size

    @property
    def held(self) -> tuple[int, int]:
        """Messages and bytes that have arrived and are not done."""
        return self._arrived[0] - self._left[0], self._arrived[1] - self._left[1]

    @property
    def most(self) -> tuple[int, int]:
        """Of which so many may be."""
        return self._most

    def full(self) -> bool:
        """Whether to rest: from when either limit is passed until half of both is free again. For the fetching thread."""
        share = max((self._arrived[i] - self._left[i]) / self._most[i] for i in (0, 1))
        self._resting = share > (0.5 if self._resting else 1.0)
        return self._resting


class Line:
    """A partition's messages in their order, from when they arrive until they and all before them are committed.

    `position` is the offset up to which everything is committed; `key` is its name among the store's positions. Used on one
    thread.
    """

    def __init__(self, key: str, position: int, backlog: Backlog) -> None:
        self.key = key
        self.backlog = backlog
        self.position = position
        self.retired = False
        """Whether offsets mean something else by now (the topic was made anew): nothing of this line is stored any more."""
        self._open: deque[Mark] = deque()

    def add(self, offset: int, size: int = 0) -> "Mark":
        """A message has arrived, after all that have arrived before."""
        mark = Mark(self, offset, size)
        self._open.append(mark)
        return mark

    @property
    def open(self) -> int:
        """Messages that have arrived and are not behind the position."""
        return len(self._open)

    def done(self, offset: int) -> bool:
        """Whether everything before `offset` is committed, as far as it has arrived."""
        return not self._open or self._open[0].offset >= offset

    def reached(self, counts: "Mapping[Mark, int]") -> int:
        """The position once `counts` more parts of those messages are committed."""
        position = self.position
        for mark in self._open:
            if mark.left is None or mark.left > counts.get(mark, 0):
                break
            position = mark.offset + 1
        return position

    def settle(self) -> None:
        """Moves the position over what is committed."""
        while self._open and self._open[0].left == 0:
            self.position = self._open.popleft().offset + 1


class Mark:
    """One message on its line. `left`: how many of its documents are not committed, `None` until they are counted."""

    __slots__ = ("left", "line", "offset", "size")

    def __init__(self, line: Line, offset: int, size: int) -> None:
        self.line = line
        self.offset = offset
        self.size = size
        self.left: int | None = None


def positions(marks: Iterable[Mark]) -> dict[str, dict[str, int]]:
    """What is to be stored with a commit that settles `marks` (once for each document)."""
    counts = Counter(marks)
    out = {}
    for line in {mark.line for mark in counts}:
        reached = line.reached(counts)
        if reached != line.position and not line.retired:
            out[line.key] = {"offset": reached}
    return out


def settle(marks: Iterable[Mark]) -> None:
    """The commit has happened."""
    counts = Counter(marks)
    for mark, count in counts.items():
        if mark.left:
            mark.left = max(mark.left - count, 0)
            if mark.left == 0:
                mark.line.backlog.leave(mark.size)
    for line in {mark.line for mark in counts}:
        line.settle()
