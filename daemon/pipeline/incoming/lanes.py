"""The order of waiting work: fresh before bulk before OCR, alternating between sources.

At most `FRESH_PER_SOURCE` work items of a source wait in the fresh lane. A further item indicates a burst (a checkout of a
repository, a request of many documents). One item then moves to the bulk lane: the oldest of the directory or request that has
the most waiting items, counting both lanes. So a single file that is saved during or after a burst stays fresh.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping

from daemon.pipeline.work_items import Group, Urgency, Work

FRESH_PER_SOURCE = 8
"""Maximum work items of one source in the fresh lane: few enough to be parsed and committed within a second."""

FRESH_IN_A_ROW = 7
"""After this many fresh work items, one bulk item is taken if any waits, so bulk work is slowed but never stopped."""

Turn = tuple[str, bool]
"""Key by which the items of a lane alternate: (source, whether the work was moved to bulk as part of a burst)."""


class Lane:
    """Work of one urgency: alternates between turns, and is in the order of arrival within a turn."""

    def __init__(self) -> None:
        self._turns: OrderedDict[Turn, OrderedDict[str, Work]] = OrderedDict()

    def __bool__(self) -> bool:
        """Whether work waits."""
        return bool(self._turns)

    def put(self, turn: Turn, work: Work) -> OrderedDict[str, Work]:
        """Appends work to its turn; returns all work of that turn."""
        waiting = self._turns.setdefault(turn, OrderedDict())
        waiting[work.key] = work
        return waiting

    def discard(self, turn: Turn, key: str) -> None:
        waiting = self._turns[turn]
        del waiting[key]
        if not waiting:
            del self._turns[turn]

    def next(self, free: Callable[[str], bool], not_from: Container[str] = ()) -> Work | None:
        """Returns the next work whose key is free and whose source is not in `not_from`; moves its turn to the end.

        The work stays in the lane.
        """
        for turn, waiting in self._turns.items():
            if turn[0] in not_from:
                continue
            for key, work in waiting.items():
                if free(key):
                    self._turns.move_to_end(turn)
                    return work
        return None


class Lanes:
    """All waiting work, one item per key."""

    def __init__(self) -> None:
        self._lanes = {urgency: Lane() for urgency in Urgency}
        self._ocr = Lane()
        self._places: dict[str, tuple[Lane, Turn, Group | None]] = {}
        """The lane, turn and group of each key's work. The group is None for work that did not arrive as fresh."""
        self._groups: Counter[Group] = Counter()
        """Number of waiting items by group, counting only items that arrived as fresh."""
        self._fresh_in_a_row = 0

    def put(self, work: Work) -> None:
        waiting = self._place(work, (work.source, False))
        if work.urgency is Urgency.FRESH and len(waiting) > FRESH_PER_SOURCE:
            self._demote(of_burst(waiting.values(), self._groups))

    def remove(self, work: Work) -> None:
        lane, turn, group = self._places.pop(work.key)
        lane.discard(turn, work.key)
        if group is not None:
            self._groups[group] -= 1
            if not self._groups[group]:
                del self._groups[group]

    def next(self, free: Callable[[str], bool], fresh_only: bool = False, not_from: Container[str] = ()) -> Work | None:
        """Returns the next work whose key is free; the work stays in its lane until `remove`. `fresh_only` skips bulk work;
        `not_from` skips work of these sources."""
        order = [Urgency.FRESH] if fresh_only else list(Urgency)
        if not fresh_only and self._fresh_in_a_row >= FRESH_IN_A_ROW:
            order.reverse()
        for urgency in order:
            work = self._lanes[urgency].next(free, not_from)
            if work is not None:
                self._fresh_in_a_row = self._fresh_in_a_row + 1 if urgency is Urgency.FRESH else 0
                return work
        return None

    def next_ocr(self, free: Callable[[str], bool]) -> Work | None:
        """Returns the next OCR work whose key is free; the work stays in its lane until `remove`. None if other work waits."""
        return None if any(self._lanes.values()) else self._ocr.next(free)

    def _demote(self, work: Work) -> None:
        self.remove(work)
        work.urgency = Urgency.BULK
        self._place(work, (work.source, True))

    def _place(self, work: Work, turn: Turn) -> OrderedDict[str, Work]:
        lane = self._ocr if work.recognise else self._lanes[work.urgency]
        group = group_of(work) if work.urgency is Urgency.FRESH or turn[1] else None
        self._places[work.key] = lane, turn, group
        if group is not None:
            self._groups[group] += 1
        return lane.put(turn, work)


def group_of(work: Work) -> Group:
    return work.source, work.inbox_places[-1].ticket if work.inbox_places else work.key.rpartition("/")[0]


def of_burst(waiting: Iterable[Work], groups: Mapping[Group, int]) -> Work:
    """Returns the item to move to bulk if too many items of a source wait: the oldest of the largest group in `groups`."""
    return max(waiting, key=lambda work: groups[group_of(work)])  # the first if several groups are equally large
