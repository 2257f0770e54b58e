"""The nodes that a push has reached, numbered in the order in which it reached them.

What a push keeps for each of them then lies side by side, however many nodes the graph has. Only the numbers themselves lie in
an array over all nodes. It is one that was used before: new pages would cost more than all else.
"""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.int64]

SPARE_SHARE = 8
"""An array for numbers is made longer by this part, as the next query may be after the next commit."""
KEPT_ARRAYS = 2
"""Arrays that are kept for the next queries: 38 MB each at ten million nodes."""


class ReachedNodes:
    """For one push at a time; `close` it, or its array is made anew for the next."""

    def __init__(self, size: int) -> None:
        """`size`: how many nodes there are."""
        self._places = _spare.take(size)
        """Of each node one more than its number; 0 of those that were not reached."""
        self.nodes: Nodes = np.empty(0, np.int64)
        """The nodes that were reached, by their number."""

    def numbers_of(self, nodes: Nodes) -> Nodes:
        """The numbers of `nodes`, some of which may stand there twice. Those that had none get the next ones."""
        places = self._places[nodes]
        new = places == 0
        if new.any():
            fresh = each_once(nodes[new])
            first = len(self.nodes) + 1
            # First what `close` clears, then what it clears.
            self.nodes = np.concatenate([self.nodes, fresh])
            self._places[fresh] = np.arange(first, first + len(fresh))
            places[new] = self._places[nodes[new]]
        return places.astype(np.int64) - 1

    def close(self) -> None:
        """Nothing is asked of it any more."""
        self._places[self.nodes] = 0
        _spare.give(self._places)


class _SpareArrays:
    """Arrays of zeros that nobody uses."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[NDArray[np.int32]] = []

    def take(self, size: int) -> NDArray[np.int32]:
        with self._lock:
            self._kept = [each for each in self._kept if len(each) >= size]
            if self._kept:
                return self._kept.pop()
        return np.zeros(size + size // SPARE_SHARE, np.int32)

    def give(self, array: NDArray[np.int32]) -> None:
        with self._lock:
            self._kept = [*self._kept, array][-KEPT_ARRAYS:]


_spare = _SpareArrays()


def each_once(numbers: NDArray[Any]) -> NDArray[Any]:
    """The `numbers` in order, each once."""
    ordered = np.sort(numbers)
    if len(ordered) < 2:
        return ordered
    once: NDArray[Any] = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return once
