"""Numbers the nodes that a push has reached, in the order of arrival.

The push's values of these nodes are then contiguous, whatever the size of the graph. Only the numbers themselves are in an
array over all nodes. This array is reused, because allocating its pages would cost more than the push.
"""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.int64]

SPARE_SHARE = 8
"""An array is allocated longer by 1 / `SPARE_SHARE`, so that the next query can reuse it after a commit."""
KEPT_ARRAYS = 2
"""Number of arrays that are kept for the next queries; each takes 38 MB for ten million nodes."""


class ReachedNodes:
    """The numbers for one push at a time. `close` returns the array for reuse."""

    def __init__(self, size: int) -> None:
        """`size` is the number of nodes of the graph."""
        self._places = _spare.take(size)
        """One plus the number of each reached node, 0 for all other nodes."""
        self.nodes: Nodes = np.empty(0, np.int64)
        """The reached nodes, in order of their numbers."""

    def numbers_of(self, nodes: Nodes) -> Nodes:
        """Returns the numbers of `nodes`, which may contain repetitions. Nodes without a number get the next ones."""
        places = self._places[nodes]
        new = places == 0
        if new.any():
            fresh = each_once(nodes[new])
            first = len(self.nodes) + 1
            # `nodes` is extended first, so that `close` clears every entry even if the next line fails.
            self.nodes = np.concatenate([self.nodes, fresh])
            self._places[fresh] = np.arange(first, first + len(fresh))
            places[new] = self._places[nodes[new]]
        return places.astype(np.int64) - 1

    def close(self) -> None:
        """Clears the array and returns it for reuse. The object must not be used afterwards."""
        self._places[self.nodes] = 0
        _spare.give(self._places)


class _SpareArrays:
    """Unused arrays of zeros."""

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
    """Returns the distinct `numbers` in ascending order."""
    ordered = np.sort(numbers)
    if len(ordered) < 2:
        return ordered
    once: NDArray[Any] = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])]
    return once
