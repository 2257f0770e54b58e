"""In which order work that waits is taken: what is fresh before bulk, and in turns between sources.

Of one source at most `FRESH_PER_SOURCE` pieces wait in the fresh lane. Where one more comes, there is a burst (a checkout, a
request of many documents), and one piece falls to the bulk lane: the oldest of the directory, or of the request, that has
most there. So a file that is saved beside a burst, or after it, stays fresh.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable

from daemon.pipeline.work import Urgency, Work

FRESH_PER_SOURCE = 16
"""Pieces of a source's work that may wait in the fresh lane: some are read and committed within a second."""

FRESH_IN_A_ROW = 7
"""After so many pieces of fresh work one of bulk is taken, if any waits: bulk is slowed, never stopped."""

Turn = tuple[str, bool]
"""Who takes turns in a lane: a source, and apart from what its scans found, its bursts."""


class Lane:
    """Work of one urgency, in the order it came for each source; sources take turns."""

    def __init__(self) -> None:
        self._turns: OrderedDict[Turn, OrderedDict[str, Work]] = OrderedDict()

    def put(self, turn: Turn, work: Work) -> OrderedDict[str, Work]:
        """Adds work as the last of its turn; returns all of that turn."""
        waiting = self._turns.setdefault(turn, OrderedDict())
        waiting[work.key] = work
        return waiting

    def discard(self, turn: Turn, key: str) -> None:
        waiting = self._turns[turn]
        del waiting[key]
        if not waiting:
            del self._turns[turn]

    def next(self, free: Callable[[str], bool]) -> Work | None:
        """The next work whose key is free, which stays here. Who it belongs to has had its turn then."""
        for turn, waiting in self._turns.items():
            for key, work in waiting.items():
                if free(key):
                    self._turns.move_to_end(turn)
                    return work
        return None


class Lanes:
    """All work that waits: one piece for each key."""

    def __init__(self) -> None:
        self._lanes = {urgency: Lane() for urgency in Urgency}
        self._places: dict[str, tuple[Urgency, Turn]] = {}
        self._fresh_in_a_row = 0

    def put(self, work: Work) -> None:
        waiting = self._place(work, (work.source, False))
        if work.urgency is Urgency.FRESH and len(waiting) > FRESH_PER_SOURCE:
            self._demote(_of_largest_group(waiting))

    def remove(self, work: Work) -> None:
        urgency, turn = self._places.pop(work.key)
        self._lanes[urgency].discard(turn, work.key)

    def next(self, free: Callable[[str], bool], fresh_only: bool = False) -> Work | None:
        """The next work whose key is free, which stays here until it is removed. `fresh_only`: never one of bulk."""
        order = [Urgency.FRESH] if fresh_only else list(Urgency)
        if not fresh_only and self._fresh_in_a_row >= FRESH_IN_A_ROW:
            order.reverse()
        for urgency in order:
            work = self._lanes[urgency].next(free)
            if work is not None:
                self._fresh_in_a_row = self._fresh_in_a_row + 1 if urgency is Urgency.FRESH else 0
                return work
        return None

    def _demote(self, work: Work) -> None:
        self.remove(work)
        work.urgency = Urgency.BULK
        self._place(work, (work.source, True))

    def _place(self, work: Work, turn: Turn) -> OrderedDict[str, Work]:
        self._places[work.key] = work.urgency, turn
        return self._lanes[work.urgency].put(turn, work)


def _of_largest_group(waiting: OrderedDict[str, Work]) -> Work:
    """The oldest of the group that has most; of groups as large, of the one that came first."""
    largest = Counter(_group(work) for work in waiting.values()).most_common(1)[0][0]
    return next(work for work in waiting.values() if _group(work) == largest)


def _group(work: Work) -> str:
    """What comes in together: the documents of one request, or the files of one directory."""
    return work.tickets[-1] if work.tickets else work.key.rpartition("/")[0]
