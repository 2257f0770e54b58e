"""The node order in which products are fastest: the joined base's phrases and passages come first.

Later phrases and passages follow alternately, so that a node keeps its number when nodes are added; some numbers are unused. A
product can therefore read and write the base's part of a vector in place.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class NodeOrder:
    """The node order of a graph with `phrases` phrases, then `passages` passages. The base contains the first phrases and the
    first passages."""

    def __init__(self, base: tuple[int, int], phrases: int, passages: int) -> None:
        """`base`: (number of phrases, number of passages) in the base."""
        self._base_phrases, self._base_passages = base
        self.known = sum(base)
        """Number of nodes in the base."""
        self._phrases = phrases
        self._nodes = phrases + passages
        self._later_phrases, later_passages = phrases - base[0], passages - base[1]
        self.size = self.known + 2 * max(self._later_phrases, later_passages)
        """Length of a vector over the node numbers, including unused numbers."""

    def inner(self, nodes: NDArray[Any]) -> NDArray[np.int64]:
        """Converts node numbers of the graph to numbers of this order."""
        nodes = nodes.astype(np.int64, copy=False)
        if self.size == self.known:
            return nodes
        is_passage = nodes >= self._phrases
        rows = nodes - self._phrases * is_passage
        after_base = rows - np.where(is_passage, self._base_passages, self._base_phrases)
        placed: NDArray[np.int64] = np.where(
            after_base < 0, rows + self._base_phrases * is_passage, self.known + 2 * after_base + is_passage
        )
        return placed

    def outer(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Converts numbers of this order to node numbers of the graph."""
        if self.size == self.known:
            return numbers
        after_base, is_passage = np.divmod(numbers - self.known, 2)
        later = after_base + np.where(is_passage, self._phrases + self._base_passages, self._base_phrases)
        old = numbers + self._later_phrases * (numbers >= self._base_phrases)
        found: NDArray[np.int64] = np.where(numbers < self.known, old, later)
        return found

    def base_passages(self) -> slice:
        """Returns the numbers of the base's passages."""
        return slice(self._base_phrases, self.known)

    def is_passage(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns the mask of the numbers that belong to passages."""
        old = (numbers >= self._base_phrases) & (numbers < self.known)
        later: NDArray[np.bool_] = (numbers >= self.known) & ((numbers - self.known) % 2 == 1)
        return old | later

    def enter(self, x: NDArray[Any]) -> NDArray[Any]:
        """Converts a vector over the graph's nodes, shape (nodes,), to a vector in this order, shape (size,)."""
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
        """Converts a vector in this order, shape (size,), to a vector over the graph's nodes, shape (nodes,)."""
        if self.size == self.known:
            return y
        first, passages = self._base_phrases, self._phrases + self._base_passages
        x = np.empty(self._nodes, y.dtype)
        x[:first] = y[:first]
        x[self._phrases : passages] = y[first : self.known]
        x[first : self._phrases] = y[self.known :: 2][: self._phrases - first]
        x[passages:] = y[self.known + 1 :: 2][: self._nodes - passages]
        return x
