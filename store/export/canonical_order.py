"""Sorts the living memory in an order that depends only on its content. Every export uses this order.

Arrow and numpy sort arrays without holding the GIL, so queries and commits run concurrently. An edge takes 20 bytes instead of
a tuple, because there may be millions of edges.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from store.links.targets import PART_PREFIX, THREAD_SCHEME
from store.rows import Rows64
from store.snapshot import DocumentSnapshot, Snapshot

EdgeType = Literal["context", "mention", "relation", "synonym"]
EDGE_TYPES: tuple[EdgeType, ...] = ("context", "mention", "relation", "synonym")

DIGITS = 7
"""Number of decimal places of a weight; float32 is not more precise."""

KEPT_TARGETS = 1_024
"""Number of linked documents whose passage ids are cached."""


def _sorted(rows: NDArray[Any], texts: Iterable[str]) -> Rows64:
    """Returns `rows` sorted by their `texts`. Sorting UTF-8 gives the order of code points."""
    order: Rows64 = pc.sort_indices(pa.array(texts, pa.large_string())).to_numpy()
    return rows.astype(np.int64)[order]


class CanonicalOrder:
    """The order of a snapshot's living passages (by id), phrases and statements (by text), and edges (by type and ends)."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    @cached_property
    def passages(self) -> Rows64:
        """The rows of the living passages, ordered by id."""
        rows = np.flatnonzero(self.snapshot.passage_alive)
        return _sorted(rows, [self.snapshot.passage_id(row) for row in rows.tolist()])

    @cached_property
    def phrases(self) -> Rows64:
        """The rows of the living phrases, ordered by text."""
        rows = np.flatnonzero(self.snapshot.phrase_alive)
        return _sorted(rows, [self.snapshot.phrase(row) for row in rows.tolist()])

    @cached_property
    def _passage_places(self) -> Rows64:
        return places(self.passages, self.snapshot.n_passages)

    @cached_property
    def _phrase_places(self) -> Rows64:
        return places(self.phrases, self.snapshot.n_phrases)

    @cached_property
    def triples(self) -> Rows64:
        """The rows of the living statements, ordered by subject, predicate and object."""
        return self._sorted_triples(self.snapshot.statement_alive)

    @cached_property
    def triples_and_mentions(self) -> Rows64:
        """The rows of the living statements and mention edges, ordered by subject, predicate and object."""
        return self._sorted_triples(self.snapshot.triple_alive)

    def _sorted_triples(self, wanted: NDArray[np.bool_]) -> Rows64:
        rows = np.flatnonzero(wanted)
        predicates = [self.snapshot.predicate(row) for row in rows.tolist()]
        places = {text: place for place, text in enumerate(sorted(set(predicates)))}
        second = np.fromiter((places[text] for text in predicates), np.int64, len(predicates))
        first, third = self.triple_ends(rows).T
        return rows.astype(np.int64)[np.lexsort((third, second, first))]

    def triple_ends(self, triples: NDArray[Any]) -> Rows64:
        """Returns the positions in `phrases` of the subject and object of each row in `triples`, shape (n, 2)."""
        ends: Rows64 = self._phrase_places[self.snapshot.triple_ends[triples]].reshape(-1, 2)
        return ends

    def edges(self, kind: EdgeType) -> tuple[Rows64, Rows64, NDArray[np.float64]]:
        """Returns three arrays, (source, target, weight), of all edges of one kind. Each edge occurs once, ordered by source
        and target.

        Ends are positions: the source of a context edge in `passages`, every other end in `phrases`.
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


def places(rows: Rows64, n: int) -> Rows64:
    """Returns the position of each of `n` rows in `rows`, or -1 for a row that is not in it, shape (n,)."""
    places = np.full(n, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return places


@dataclass(frozen=True, slots=True)
class LinkEdge:
    """An edge from a passage that contains a link to a passage of the linked document. Link edges are not stored. They are
    derived from the present documents, so a link edge appears and disappears together with the linked document.

    `type` is `attachment` for a link from a document to a file inside it, `thread` for a link from a message to the message
    that it answers, and otherwise `link`. `row` is the row of the passage that contains the link; `target` is the id of the
    passage to which it leads. `count` is the number of links of this type from the passage to documents that contain the
    target.
    """

    type: str
    row: int
    target: str
    count: int


def link_edges(memory: DocumentSnapshot, passages: Sequence[int]) -> Iterator[LinkEdge]:
    """Yields the edges from the passages in the rows `passages`, in this order, then by target and type. Reads the passages of
    each document once."""
    linked = _linked_documents(memory)
    ids_of = lru_cache(KEPT_TARGETS)(lambda uri: {ref.passage for ref in memory.documents[uri].passages})
    for row in passages:
        id = memory.snapshot.passage_id(row)
        edges: Counter[tuple[str, str]] = Counter()
        for type, uri in linked.get(id, ()):
            if uri in memory.documents:
                edges.update((other, type) for other in ids_of(uri) - {id})
        for target, type in sorted(edges):
            yield LinkEdge(type, row, target, edges[target, type])


def _linked_documents(memory: DocumentSnapshot) -> dict[str, list[tuple[str, str]]]:
    """Returns, by passage id, (type, target URI) for each link in the passage that leads to another document."""
    found: dict[str, list[tuple[str, str]]] = {}
    for uri, document in memory.documents.items():
        for ref in document.passages:
            for link in ref.links:
                target = memory.snapshot.linked_document(link.target, uri)
                if target is not None and target != uri:
                    found.setdefault(ref.passage, []).append((_edge_type(link.target, uri, target), target))
    return found


def _edge_type(link_target: str, source: str, target: str) -> str:
    if target.startswith(f"{source}/" if "#" in source else f"{source}#"):
        return "attachment"
    return "thread" if link_target.startswith((PART_PREFIX, THREAD_SCHEME)) else "link"
