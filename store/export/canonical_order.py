"""The living memory in an order that depends on its content alone: what every export goes through.

Sorted as arrays, by Arrow and numpy: both let go of the interpreter, so that queries and commits go on beside, and a million
edges take 20 bytes each instead of a tuple.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from store.snapshot import Snapshot

Rows = NDArray[np.int64]
EdgeType = Literal["context", "mention", "relation", "synonym"]
EDGE_TYPES: tuple[EdgeType, ...] = ("context", "mention", "relation", "synonym")

DIGITS = 7
"""Decimals of a weight: float32 has no more."""


def _sorted(rows: NDArray[Any], texts: Iterable[str]) -> Rows:
    """`rows` by their `texts`. UTF-8 sorts as code points do."""
    order: Rows = pc.sort_indices(pa.array(texts, pa.large_string())).to_numpy()
    return rows.astype(np.int64)[order]


class CanonicalOrder:
    """A snapshot's living passages by id, phrases and statements by text, edges by type and ends."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    @cached_property
    def passages(self) -> Rows:
        """Rows of the living passages, by id."""
        rows = np.flatnonzero(self.snapshot.passage_alive)
        return _sorted(rows, [self.snapshot.passage_id(row) for row in rows.tolist()])

    @cached_property
    def phrases(self) -> Rows:
        """Rows of the living phrases, by text."""
        rows = np.flatnonzero(self.snapshot.phrase_alive)
        return _sorted(rows, [self.snapshot.phrase(row) for row in rows.tolist()])

    @cached_property
    def _passage_places(self) -> Rows:
        return places(self.passages, self.snapshot.n_passages)

    @cached_property
    def _phrase_places(self) -> Rows:
        return places(self.phrases, self.snapshot.n_phrases)

    @cached_property
    def triples(self) -> Rows:
        """Rows of the living statements, by subject, predicate and object."""
        return self._sorted_triples(self.snapshot.statement_alive)

    @cached_property
    def triples_and_mentions(self) -> Rows:
        """The same of the living statements and mention edges."""
        return self._sorted_triples(self.snapshot.triple_alive)

    def _sorted_triples(self, wanted: NDArray[np.bool_]) -> Rows:
        rows = np.flatnonzero(wanted)
        predicates = [self.snapshot.predicate(row) for row in rows.tolist()]
        places = {text: place for place, text in enumerate(sorted(set(predicates)))}
        second = np.fromiter((places[text] for text in predicates), np.int64, len(predicates))
        first, third = self.triple_ends(rows).T
        return rows.astype(np.int64)[np.lexsort((third, second, first))]

    def triple_ends(self, triples: NDArray[Any]) -> Rows:
        """The places in `phrases` of the subject and the object of each of `triples`, which are rows; shape (n, 2)."""
        ends: Rows = self._phrase_places[self.snapshot.triple_ends[triples]].reshape(-1, 2)
        return ends

    def edges(self, kind: EdgeType) -> tuple[Rows, Rows, NDArray[np.float64]]:
        """(source, target, weight) of every edge of one kind, each once, by source and target.

        Both ends are places: a context edge's source in `passages`, every other end in `phrases`.
        """
        matrix = getattr(self.snapshot, kind).merged().tocoo()
        sources = (self._passage_places if kind == "context" else self._phrase_places)[matrix.row]
        targets = self._phrase_places[matrix.col]
        weights = np.round(matrix.data, DIGITS)
        if kind != "context":
            once = sources < targets
            sources, targets, weights = sources[once], targets[once], weights[once]
        order = np.lexsort((targets, sources))
        return sources[order], targets[order], weights[order]


def places(rows: Rows, n: int) -> Rows:
    """Where each of `n` rows stands among `rows`, -1 for one that does not; shape (n,)."""
    places = np.full(n, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return places
