"""A snapshot: the memory as of one commit, which later commits do not change.

Taking a snapshot copies only the ends of arrays. Whole arrays that queries need (counts, degrees) are built on first use and
shared by all queries of the commit.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from threading import Lock
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from store.index.columns.holders import Holders
from store.index.columns.row_lists import NO_ROWS
from store.index.delta_csr import MatrixView
from store.index.graph.adjacency import Adjacency
from store.index.graph.edge_entries import EdgeWeights, Graph
from store.index.live_index import LiveIndex
from store.index.words.postings import ComparedWords
from store.types import Document, PassageText, Triple


class Snapshot:
    """The memory at `commit`. Rows index the arrays below. Dead rows keep their numbers; `*_alive` masks them."""

    def __init__(self, index: LiveIndex, commit: int, time: float) -> None:
        self.commit = commit
        self.time = time
        self.dim = index.dim
        self.n_passages = len(index.passages)
        self.n_phrases = len(index.phrases)
        self.n_triples = len(index.predicates)
        self.living_passages = index.living.passages
        self.living_phrases = index.living.phrases
        self.living_triples = index.living.triples
        self.living_statements = index.living.statements
        self._passages = index.passages
        self._phrases = index.phrases
        self._phrase_rows = index.phrase_rows
        self._passage_rows = index.passage_rows
        self._predicates = index.predicates
        self._postings = index.postings
        self._link_targets = index.link_targets
        self._total_length = index.living.words
        self._adjacencies: dict[EdgeWeights, Adjacency] = {}
        self._adjacency_lock = Lock()
        self.passage_vectors = index.passage_vectors.view()
        self.phrase_vectors = index.phrase_vectors.view()
        self.triple_vectors = index.triple_vectors.view()
        self.triple_ends: NDArray[np.int32] = index.triple_ends.view()
        """Phrase rows of subject and object, shape (n_triples, 2)."""
        self.is_statement: NDArray[np.bool_] = index.statements.view()
        """Mask of the triples that are statements rather than mention edges, shape (n_triples,)."""
        self._passage_counts = index.counts["passages"].view()
        self._phrase_counts = index.counts["phrases"].view()
        self._triple_counts = index.counts["triples"].view()
        self._crowded = index.crowding.flags
        self.crowded_phrases = index.crowding.n
        """Number of crowded phrases (`store.index.synonyms.crowding`)."""
        matrices = {name: matrix.view() for name, matrix in index.matrices.items()}
        self.relation: MatrixView = matrices["relation"]
        """Phrase x phrase, symmetric: number of (passage, statement) pairs that link the two phrases."""
        self.mention: MatrixView = matrices["mention"]
        """Phrase x phrase, symmetric: number of (passage, mention edge) pairs that link the two phrases."""
        self.synonym: MatrixView = matrices["synonym"]
        """Phrase x phrase, symmetric: cosines that reach the synonym threshold."""
        self.context: MatrixView = matrices["context"]
        """Passage x phrase: 1 if the passage contains the phrase."""
        self.incidence: MatrixView = matrices["incidence"]
        """Passage x triple: 1 if the passage states the triple or has the mention edge."""
        self.naming: MatrixView = matrices["naming"]
        """Names x passage: number of documents with these names that contain the passage."""
        self._names = index.names.texts
        self._name_counts = index.names.counts.view()
        self._name_postings = index.names.postings

    def at(self, commit: int, time: float) -> "Snapshot":
        """Returns this memory under the number and time of a later commit that did not change it."""
        later = copy(self)
        later.commit, later.time = commit, time
        return later

    @cached_property
    def passage_alive(self) -> NDArray[np.bool_]:
        """Mask of the living passages, shape (n_passages,)."""
        return self._passage_counts.positive()

    @cached_property
    def phrase_alive(self) -> NDArray[np.bool_]:
        """Mask of the living phrases, shape (n_phrases,)."""
        return self._phrase_counts.positive()

    @cached_property
    def phrase_crowded(self) -> NDArray[np.bool_]:
        """Mask of the phrases with so many neighbours that they get no synonym edges, shape (n_phrases,)."""
        out = np.zeros(self.n_phrases, np.bool_)
        out[: len(self._crowded)] = self._crowded
        return out

    @cached_property
    def triple_alive(self) -> NDArray[np.bool_]:
        """Mask of the living triples, shape (n_triples,)."""
        return self._triple_counts.positive()

    @cached_property
    def statement_alive(self) -> NDArray[np.bool_]:
        """Mask of the living statements (`triple_alive` without mention edges), shape (n_triples,)."""
        alive: NDArray[np.bool_] = self.triple_alive & self.is_statement
        return alive

    @property
    def phrase_passages(self) -> NDArray[np.int32]:
        """Number of living passages that contain each phrase (the inverse of node specificity), shape (n_phrases,)."""
        return self._phrase_counts.array()

    def passage_count(self, phrase: int) -> int:
        """Returns the number of living passages that contain a phrase."""
        return self._phrase_counts[phrase]

    def statement_counts(self, triples: NDArray[Any]) -> NDArray[np.int32]:
        """Returns the number of living passages that state each of `triples` (rows), shape (len(triples),)."""
        return np.array([self._triple_counts[int(row)] for row in triples], np.int32)

    def passage(self, row: int) -> PassageText:
        return self._passages[row]

    def passage_id(self, row: int) -> str:
        """Returns a passage's id without reading its text, which may be on disk."""
        return self._passages.ids[row]

    def passage_title(self, row: int) -> str:
        return self._passages.titles[row]

    def phrase(self, row: int) -> str:
        return self._phrases[row]

    def triple(self, row: int) -> Triple:
        subject, object_ = self.triple_ends[row]
        return self._phrases[subject], self._predicates[row], self._phrases[object_]

    def predicate(self, row: int) -> str:
        """Returns the predicate of the triple in a row."""
        return self._predicates[row]

    def phrase_row(self, text: str) -> int | None:
        """Returns the row of a living phrase; None if there is none."""
        row = self._phrase_rows.get(text)
        return row if row is not None and row < self.n_phrases and self._phrase_counts[row] > 0 else None

    def passage_row(self, id: str) -> int | None:
        """Returns the row of a living passage; None if there is none."""
        row = self._passage_rows.get(id)
        return row if row is not None and row < self.n_passages and self._passage_counts[row] > 0 else None

    def linked_document(self, target: str, source: str) -> str | None:
        """Returns the URI of the document to which the link `target` in the document `source` leads, or None.

        Links are resolved as of the last commit, so this snapshot may lack the resulting document.
        """
        return self._link_targets.resolve(target, source)

    def bm25(self, query: str) -> NDArray[np.float32]:
        """Returns the BM25 score of every passage, shape (n_passages,)."""
        return self._postings.scores(query, self.passage_alive, self._total_length)

    def compare_words(
        self,
        query: str,
        compared: NDArray[np.bool_],
        counted: NDArray[np.bool_],
        best: int,
        also: NDArray[Any] = NO_ROWS,
    ) -> ComparedWords:
        """Compares a query by words with the living passages in `compared`. Returns the `best` passages, including ties, and
        the passages `also`.

        Word frequencies are counted over the living passages in `counted`. `compared` and `counted` are masks over all
        passages; `also` contains rows.
        """
        known = self._total_length if counted is self.passage_alive else None
        return self._postings.compare(query, compared, counted, known, best, also)

    def names(self, row: int) -> str:
        """Returns the names (`store.links.names.names_text`) in a row of `naming`."""
        return self._names[row]

    def compare_names(
        self,
        query: str,
        best: int,
        compared: NDArray[np.bool_] | None = None,
        counted: NDArray[np.bool_] | None = None,
    ) -> ComparedWords:
        """Compares `query` with the names of documents, as `compare_words` does with passages; the result's `rows` are rows of
        `naming`.

        Names are included if the mask contains a passage of their documents; None means all living passages.
        """
        of_compared = self._names_of(compared)
        of_counted = of_compared if counted is compared else self._names_of(counted)
        return self._name_postings.compare(query, of_compared, of_counted, None, best)

    def _names_of(self, passages: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Returns the mask of the rows of `naming` that have a passage in `passages`, shape (names,).

        Takes O(size of `naming`) time unless `passages` contains all living passages.
        """
        alive = self._name_counts.positive()
        if passages is None or passages is self.passage_alive:
            return alive
        has: NDArray[np.bool_] = self.naming.matvec(passages.astype(np.float64))[: len(alive)] > 0
        return alive & has

    def name_fingerprints(self, of: Callable[[str], int]) -> NDArray[np.uint64]:
        """Returns a fingerprint of the names of the documents that contain each passage, shape (n_passages,).

        `of` maps a text to a 64-bit hash. Takes O(size of `naming`) time.
        """
        matrix = self.naming.merged().tocoo()
        hashes = np.array([of(self._names[row]) for row in range(matrix.shape[0])], np.uint64)
        out = np.zeros(self.n_passages, np.uint64)
        np.add.at(out, matrix.col, hashes[matrix.row] * matrix.data.astype(np.uint64))
        return out

    def words(self, text: str) -> set[tuple[str, ...]]:
        """Returns the words of a text as in `ComparedWords.rarities`."""
        return self._postings.words(text)

    def passage_lengths(self, rows: Sequence[int]) -> NDArray[np.int32]:
        """Returns the number of words of each passage in `rows`, shape (len(rows),)."""
        lengths: NDArray[np.int32] = self._postings.lengths(self.n_passages)[np.array(rows, np.int64)]
        return lengths

    def bm25_of(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Returns BM25 scores of texts that are not passages (for example triples), shape (len(texts),).

        Inverse document frequencies come from the passages, the mean length from `texts`.
        """
        return self._postings.scores_of(query, texts, self.passage_alive)

    def term_fingerprints(self, of: Callable[[str], int]) -> NDArray[np.uint64]:
        """Returns `store.index.words.postings.Postings.fingerprints` of every passage, shape (n_passages,)."""
        return self._postings.fingerprints(self.n_passages, of)

    @property
    def graph(self) -> Graph:
        return Graph(**{part.name: getattr(self, part.name) for part in fields(Graph)})

    def adjacency(self, weights: EdgeWeights) -> Adjacency:
        """Returns the graph with edges weighted by `weights`, built on first use and shared by all queries of this snapshot."""
        with self._adjacency_lock:
            if weights not in self._adjacencies:
                self._adjacencies[weights] = Adjacency(self.graph, weights)
            return self._adjacencies[weights]

    @cached_property
    def edges(self) -> Mapping[str, int]:
        """Number of undirected edges of each kind."""
        return {
            "relation": self.relation.entry_count // 2,
            "mention": self.mention.entry_count // 2,
            "context": self.context.entry_count,
            "synonym": self.synonym.entry_count // 2,
        }

    def passages_of(self, triples: NDArray[Any]) -> dict[int, list[int]]:
        """Returns, for each row in `triples`, the rows of the living passages that state it."""
        out: dict[int, list[int]] = {int(row): [] for row in triples}
        if out:
            for triple, passage in zip(*self.incidence.column_entries(np.array(list(out))), strict=True):
                out[int(triple)].append(int(passage))
        return out


class DocumentLookup(Protocol):
    """Finds the documents that contain a passage, as of one commit (`DocumentSnapshot`) or the last (`store.store.Store`)."""

    def documents_with_passage(self, passage: str) -> list[str]: ...

    def document(self, uri: str) -> Document | None: ...


@dataclass(frozen=True, slots=True)
class DocumentSnapshot:
    """The memory as of `snapshot.commit` together with its documents, for queries that outlast that commit.

    The live index maps passages to documents, but it keeps changing; here, the maps are copies as of the snapshot's commit.
    """

    snapshot: Snapshot
    documents: Mapping[str, Document]
    holders: Holders
    """For each passage row: the documents that contain the passage, by URI, with the triples that they supplied
    (`store.index.effective_triples.SuppliedTriples`)."""

    def documents_with_passage(self, passage: str) -> list[str]:
        """Returns the URIs of the documents that contain a passage as of this commit, sorted; empty if it is not living."""
        row = self.snapshot.passage_row(passage)
        return sorted(self.holders[row]) if row is not None else []

    def document(self, uri: str) -> Document | None:
        return self.documents.get(uri)

    @classmethod
    def copy_of(cls, snapshot: Snapshot, index: LiveIndex) -> Self:
        """Returns the snapshot with copies of two document maps of `index`, which must be as of the snapshot's commit. Copying
        takes 10 ms for a million passages, so only queries that take seconds should use it."""
        return cls(snapshot, index.documents.copy(), index.holders.copy())
