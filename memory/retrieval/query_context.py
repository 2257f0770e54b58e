"""The context of one query: the snapshot, encoder, text and settings with which a mode ranks passages."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.linking.compared_rows import ComparedRows, RowScores
from memory.retrieval.name_words import NameWords, compare_names, with_names
from memory.retrieval.passage_weights import Floats
from memory.retrieval.score_scaling import StandardScore
from memory.retrieval.settings import RetrievalSettings
from memory.retrieval.top_k import EQUAL_SCORES, best_first, cosines, order_by_name
from memory.retrieval.unlocked_property import unlocked_property
from memory.types import Encoder
from store.index.graph.adjacency import Adjacency
from store.index.graph.edge_entries import EdgeWeights
from store.index.words.postings import ComparedWords
from store.snapshot import DocumentLookup, Snapshot
from store.types import Pause, Triple, no_pause

WORD_CANDIDATES = 100
"""Number of best passages by BM25 that are compared further, by titles and by parts of words."""

START_PASSAGES = 50
"""Maximum number of start passages of one kind (nearest passages, or passages with the query's words). Further weights are
noise whose sum would grow with the memory."""

BEST_PASSAGES = 30
"""Number of best passages of a walk whose links and documents are examined."""

MIN_KNOWN_SHARE = 0.01
"""Minimum weight of cosines if the encoder knows no word of the query. Cosines then decide only if no passage has words of the
query."""

MASK_ROWS_AT_ONCE = 65_536
"""Number of rows of two masks that are compared in one operation."""

ALL_PASSAGES = 1_000_000_000
"""A value of `k` that exceeds the number of passages of any memory."""


T = TypeVar("T")


class query_property(unlocked_property[T]):
    """A cached value that does not depend on which passages are left out: `QueryContext.leaving_out` keeps it."""


class RecognitionMemory(Protocol):
    """Selects the linked triples that are relevant to the query (HippoRAG 2, section 3.4)."""

    def keep(self, query: str, triples: Sequence[Triple]) -> Sequence[int]:
        """Returns the indices of the triples to keep, possibly none."""
        ...


class EntityReader(Protocol):
    """Extracts the named entities of a query with a model."""

    def read(self, query: str) -> Sequence[str] | None:
        """Returns the names, possibly none; None if the model is unavailable."""
        ...


class QueryContext:
    """One query on one snapshot. Values that several steps need are computed once, at the first use."""

    def __init__(
        self,
        snapshot: Snapshot,
        encoder: Encoder,
        query: str,
        settings: RetrievalSettings,
        recognition: RecognitionMemory | None = None,
        k: int = ALL_PASSAGES,
        entity_reader: EntityReader | None = None,
        left_out: Sequence[int] = (),
        documents: DocumentLookup | None = None,
        pause: Pause = no_pause,
    ) -> None:
        """`left_out`: rows of living passages that do not take part in linking.

        `documents` are the snapshot's documents, whose links are followed and whose passages are counted; None if they are not
        available. `pause` is called after each stage.
        """
        self.snapshot = snapshot
        self.encoder = encoder
        self.query = query
        self.settings = settings
        self.recognition = recognition
        self.entity_reader = entity_reader
        self.k = k
        """Number of passages that the client requests."""
        self.documents = documents
        self._pause = pause
        self.left_out = np.array(sorted(left_out), np.int64)
        self.stages_ms: dict[str, float] = {}
        self._exact_cosines: dict[int, float] = {}
        self._graphs: dict[EdgeWeights, Adjacency] = {}

    def leaving_out(self, rows: Iterable[int]) -> "QueryContext":
        """Returns a context for the same query in which further passages are left out. The query is not encoded again."""
        other = QueryContext(
            self.snapshot,
            self.encoder,
            self.query,
            self.settings,
            self.recognition,
            self.k,
            self.entity_reader,
            [*self.left_out.tolist(), *rows],
            self.documents,
            self._pause,
        )
        other.stages_ms, other._exact_cosines = self.stages_ms, self._exact_cosines
        kept = (name for name in vars(self) if isinstance(getattr(QueryContext, name, None), query_property))
        vars(other).update({name: vars(self)[name] for name in kept})
        return other

    @property
    def ordered(self) -> int:
        """Number of passages that need an exact order: for the client, and at least `BEST_PASSAGES` if documents are
        available."""
        return self.k if self.documents is None else max(self.k, BEST_PASSAGES)

    @unlocked_property
    def taking_part(self) -> NDArray[np.bool_]:
        """Mask of the living passages that are not left out, shape (n_passages,)."""
        alive = self.snapshot.passage_alive
        if len(self.left_out):
            alive = alive.copy()
            alive[self.left_out] = False
        return alive

    @unlocked_property
    def _left_out_phrases(self) -> Mapping[int, int]:
        """For each phrase in passages that are left out: the number of these passages that contain it."""
        if not len(self.left_out):
            return {}
        phrases, counts = np.unique(self.snapshot.context.entries(self.left_out)[1], return_counts=True)
        return dict(zip(phrases.tolist(), counts.tolist(), strict=True))

    def graph(self, weights: EdgeWeights) -> Adjacency:
        """Returns the graph of the passages that take part."""
        if weights not in self._graphs:
            whole = self.snapshot.adjacency(weights)
            gone = [phrase for phrase in self._left_out_phrases if not self.passage_count(phrase)]
            without = whole.without(self.left_out, np.array(gone, np.int64)) if len(self.left_out) else whole
            self._graphs[weights] = without
        return self._graphs[weights]

    def passage_count(self, phrase: int) -> int:
        """Returns the number of passages that take part and contain the phrase."""
        return self.snapshot.passage_count(phrase) - self._left_out_phrases.get(phrase, 0)

    @query_property
    def vector(self) -> NDArray[np.float32]:
        """The query's embedding, shape (dim,)."""
        with self.stage("encode"):
            return self.encoder.encode_query(self.query)

    @query_property
    def triple_vector(self) -> NDArray[np.float32]:
        """The query's embedding for comparison with triples. It differs from `vector` if the encoder has an instruction for
        triples."""
        with self.stage("encode"):
            return self.encoder.encode_triple_query(self.query)

    @property
    def temperature(self) -> float:
        """Softmax temperature of cosines in standard deviations, for this encoder."""
        return self.settings.temperature * self.encoder.temperature_factor

    @query_property
    def known_share(self) -> float:
        """Share of the query's words that the encoder knows, from `MIN_KNOWN_SHARE` to 1."""
        return max(self.encoder.known_words(self.query), MIN_KNOWN_SHARE)

    @query_property
    def is_known(self) -> bool:
        """Whether the encoder knows a word of the query. If not, the query's vector and all its cosines are zero."""
        return bool(self.vector.any())

    @query_property
    def passages_by_words(self) -> bool:
        """Whether passages are compared by BM25, because the encoder does not know the query or any passage."""
        return not self.is_known or not _any_in_both(self.snapshot.passage_alive, self.snapshot.passage_vectors.known)

    @query_property
    def triples_by_words(self) -> bool:
        """Whether triples are compared by BM25, because the encoder does not know the query or any triple."""
        return not self.is_known or not _any_in_both(self.snapshot.statement_alive, self.snapshot.triple_vectors.known)

    @unlocked_property
    def passage_mask(self) -> NDArray[np.bool_]:
        """Mask of the passages that are compared, shape (n_passages,). By words, these are the passages that take part; by
        cosine, only passages that the encoder knows."""
        snapshot = self.snapshot
        known = snapshot.passage_vectors.known
        # Does not use the vector if possible, because words are compared while the query is encoded.
        return self.taking_part if known.all() or self.passages_by_words else self.taking_part & known

    @unlocked_property
    def triple_mask(self) -> NDArray[np.bool_]:
        """Mask of the statements that are compared, shape (n_triples,); mention edges are excluded.

        A statement is compared if a passage that takes part states it; by cosine, the encoder must also know it.
        """
        snapshot = self.snapshot
        alive, known = snapshot.statement_alive, snapshot.triple_vectors.known
        if len(self.left_out):
            alive = alive.copy()
            triples, counts = np.unique(snapshot.incidence.entries(self.left_out)[1], return_counts=True)
            alive[triples[counts >= snapshot.statement_counts(triples)]] = False
        return alive if self.triples_by_words or known.all() else alive & known

    @unlocked_property
    def compared_passages(self) -> ComparedRows:
        """Compares the query with the passages that the encoder knows."""
        snapshot, exact = self.snapshot, self.settings.exact
        return ComparedRows(snapshot.passage_vectors, self.vector, self.passage_mask, snapshot.living_passages, exact)

    @property
    def similarities(self) -> NDArray[np.float32]:
        """Cosine of every passage with the query, or BM25 if passages are compared by words; shape (n_passages,)."""
        return self.passage_scores.values

    @unlocked_property
    def passage_scores(self) -> RowScores:
        """The values of `similarities`, and their maximum error."""
        if not self.passages_by_words:
            compared = self.compared_passages
            with self.stage("passages"):
                return compared.scores
        with self.stage("passages"):
            return RowScores(self.snapshot.bm25(self.query))

    @unlocked_property
    def nearest_cosines(self) -> tuple[NDArray[np.int64], Floats]:
        """The rows, ascending, that may be among the `START_PASSAGES` nearest passages, and their exact cosines."""
        compared = self.compared_passages
        with self.stage("passages"):
            rows = compared.may_be_nearest(START_PASSAGES)
            return rows, self.exact_cosines(rows)

    def exact_cosines(self, rows: NDArray[Any]) -> Floats:
        """Returns the cosines of passages in float64, shape (len(rows),). Each is computed once for all steps of the query."""
        known, wanted = self._exact_cosines, rows.tolist()
        if missing := [row for row in wanted if row not in known]:
            found = cosines(self.snapshot.passage_vectors, self.vector, np.array(missing))
            known.update(zip(missing, found.tolist(), strict=True))
        return np.array([known[row] for row in wanted], np.float64)

    @unlocked_property
    def cosine_scale(self) -> StandardScore:
        """The scale that makes the passages' cosines comparable with other scores."""
        compared = self.compared_passages
        with self.stage("passages"):
            return compared.standard_score()

    @unlocked_property
    def exact_similarities(self) -> NDArray[np.float32]:
        """`similarities` computed from the vectors themselves, for callers that weight every passage by its similarity."""
        similarities, vector = self.similarities, self.vector
        if self.passage_scores.error <= EQUAL_SCORES:
            return similarities
        with self.stage("passages"):
            return self.snapshot.passage_vectors.scores(vector)

    @unlocked_property
    def best_cosine(self) -> float:
        """Cosine of the query with the nearest compared passage; 0 if there is none with a positive cosine."""
        return float(self.nearest_cosines[1].max(initial=0.0))

    @unlocked_property
    def words(self) -> ComparedWords:
        """The passages that match the query best by words. The rarity of words is computed from the compared passages."""
        return self._compare_words(WORD_CANDIDATES)

    @unlocked_property
    def names(self) -> NameWords:
        """The query compared with the names of documents."""
        compared = self.passage_mask
        with self.stage("names"):
            return compare_names(self.snapshot, self.query, self.taking_part, compared)

    def _compare_words(self, best: int) -> ComparedWords:
        compared, names = self.passage_mask, self.names
        with self.stage("words"):
            words = self.snapshot.compare_words(self.query, self.taking_part, compared, best, names.scores.rows)
            return with_names(words, names, best)

    @unlocked_property
    def word_candidates(self) -> list[int]:
        """Rows of the `WORD_CANDIDATES` best passages by BM25, best first; each shares a word with the query."""
        return self._first_by_words(self.words, WORD_CANDIDATES)

    def best_by_words(self, k: int) -> list[int]:
        """Returns the rows of the `k` best passages by BM25, best first."""
        if k == WORD_CANDIDATES:
            return self.word_candidates
        return self._first_by_words(self._compare_words(k), k)

    def _first_by_words(self, words: ComparedWords, k: int) -> list[int]:
        with self.stage("words"):
            first = best_first(words.scores, words.rows, k, self.snapshot.passage_id)
            rows: list[int] = words.rows[first].tolist()
            return rows

    def nearest_passages(self, k: int) -> list[int]:
        """Returns the rows of the `k` passages nearest to the query by cosine, nearest first."""
        if k == START_PASSAGES:
            return order_by_name(*self.nearest_cosines, k, self.snapshot.passage_id)[0]
        compared = self.compared_passages
        with self.stage("passages"):
            return compared.nearest(k, self.snapshot.passage_id)[0]

    def stage(self, name: str) -> "_Stage":
        """Returns a context manager that adds the time spent in it to the stage `name`, in milliseconds, then pauses."""
        return _Stage(self.stages_ms, name, self._pause)


class _Stage:
    """The context manager of `QueryContext.stage`. A query uses forty of them, which would take 0.1 ms with generators."""

    __slots__ = ("_began", "_name", "_pause", "_stages_ms")

    def __init__(self, stages_ms: dict[str, float], name: str, pause: Pause) -> None:
        self._stages_ms, self._name, self._pause = stages_ms, name, pause

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        took = (time.perf_counter() - self._began) * 1000
        self._stages_ms[self._name] = self._stages_ms.get(self._name, 0.0) + took
        if kind is None:
            self._pause()


def _any_in_both(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> bool:
    """Whether a row is in both masks. Compares in parts, because the first rows nearly always suffice."""
    parts = (slice(at, at + MASK_ROWS_AT_ONCE) for at in range(0, len(one), MASK_ROWS_AT_ONCE))
    return any((one[part] & other[part]).any() for part in parts)
