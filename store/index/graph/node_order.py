"""The order of nodes in which a product costs least: what the joined base knows in front, its phrases and then its passages.

Behind that stand the phrases and passages that came later, in turn, so that a node keeps its number as others come; some
numbers are nobody's. A product takes the base's part of a vector and leaves its part of the answer where they are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class NodeOrder:
    """The order for a graph of `phrases` phrases, then `passages` passages, of which the base knows the first of each."""

    def __init__(self, base: tuple[int, int], phrases: int, passages: int) -> None:
        """`base`: how many phrases and passages the base knows."""
        self._base_phrases, self._base_passages = base
        self.known = sum(base)
        """Nodes that the base knows."""
        self._phrases = phrases
        self._nodes = phrases + passages
        self._later_phrases, later_passages = phrases - base[0], passages - base[1]
        self.size = self.known + 2 * max(self._later_phrases, later_passages)
        """All numbers there are."""

    def inner(self, nodes: NDArray[Any]) -> NDArray[np.int64]:
        """What nodes are numbered here."""
        nodes = nodes.astype(np.int64, copy=False)
        if self.size == self.known:
            return nodes
        is_passage = nodes >= self._phrases
        rows = nodes - self._phrases * is_passage
        behind = rows - np.where(is_passage, self._base_passages, self._base_phrases)
        placed: NDArray[np.int64] = np.where(
            behind < 0, rows + self._base_phrases * is_passage, self.known + 2 * behind + is_passage
        )
        return placed

    def outer(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """What nodes of this order are numbered by the graph."""
        if self.size == self.known:
            return numbers
        behind, is_passage = np.divmod(numbers - self.known, 2)
        later = behind + np.where(is_passage, self._phrases + self._base_passages, self._base_phrases)
        old = numbers + self._later_phrases * (numbers >= self._base_phrases)
        found: NDArray[np.int64] = np.where(numbers < self.known, old, later)
        return found

    def base_passages(self) -> slice:
        """The numbers of the passages that the base knows."""
        return slice(self._base_phrases, self.known)

    def is_passage(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which numbers are those of passages."""
        old = (numbers >= self._base_phrases) & (numbers < self.known)
        later: NDArray[np.bool_] = (numbers >= self.known) & ((numbers - self.known) % 2 == 1)
        return old | later

    def enter(self, x: NDArray[Any]) -> NDArray[Any]:
        """A vector over the nodes, shape (nodes,), in this order, shape (size,)."""
        if self.size == self.known:
            return x
        first, passages = self._base_phrases, self._phrases + self._base_passages
        y = np.zeros(self.size, x.dtype)
        y[:first] = x[:first]
        y[first : self.known] = x[self._phrases : passages]
        y[self.known :: 2][: self._phrases - first] = x[first : self._phrases]
        y[self.known + 1 :: 2][: self._nodes - passages] = x[passages:]
        return y

    def leave(self, y: NDArray[Any]) -> NDArray[Any]:
        """A vector in this order over the nodes as the graph numbers them."""
        if self.size == self.known:
            return y
        first, passages = self._base_phrases, self._phrases + self._base_passages
        x = np.empty(self._nodes, y.dtype)
        x[:first] = y[:first]
        x[self._phrases : passages] = y[first : self.known]
        x[first : self._phrases] = y[self.known :: 2][: self._phrases - first]
        x[passages:] = y[self.known + 1 :: 2][: self._nodes - passages]
        return x
