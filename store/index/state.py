"""The memory in memory: everything a query needs, and the one place where a commit's change is applied to it.

Rows number passages, phrases and triples in the order of their first appearance; a row is never given twice. What lives
is counted: a passage by the documents that hold it, a triple and a phrase by the living passages that hold them.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from store.index.arrays import Counts, Growing, Vectors
from store.index.bm25 import Postings
from store.index.crowding import Crowding, CrowdingChange
from store.index.lsh import SketchIndex
from store.index.matrix import LiveMatrix
from store.index.synonyms import EXACT_BELOW, Nearest, SynonymChange, linkable, needed, wordings
from store.types import Document, Extraction, ExtractionState, PassageText, Triple, Vector

SHARED = ("passage_rows", "phrase_rows", "triple_rows", "postings", "next_id")
"""The attributes of an image that are facts about texts, the same at every commit, and only ever asked for one of them."""

COPIED = ("passages", "phrases", "predicates")
"""Those that would grow under a reader."""

PREPARED_PHRASES = 4_096
"""Phrases with many synonyms whose edges are looked at together."""

TripleKey = tuple[int, str, int]
"""(subject's phrase row, predicate, object's phrase row)."""

Given = tuple[Triple, ...] | None
Key = TypeVar("Key", bound=Hashable)
NOTHING = np.empty(0, np.int32)


@dataclass(slots=True)
class Delta:
    """A commit's change to the image, worked out before anything is written: `store.log.plan`.

    The `*_changes` map rows to what is added to their counts. Edge changes are (row, column, weight added) lists.
    """

    passages: list[PassageText] = field(default_factory=list)
    passage_vectors: list[Vector] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)
    phrase_vectors: list[Vector] = field(default_factory=list)
    triples: list[TripleKey] = field(default_factory=list)
    triple_vectors: list[Vector] = field(default_factory=list)
    extractions: list[Extraction] = field(default_factory=list)
    extracted: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    users: dict[int, dict[str, Given]] = field(default_factory=dict)
    effective: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    passage_changes: dict[int, int] = field(default_factory=dict)
    phrase_changes: dict[int, int] = field(default_factory=dict)
    triple_changes: dict[int, int] = field(default_factory=dict)
    relation: list[tuple[int, int, float]] = field(default_factory=list)
    context: list[tuple[int, int, float]] = field(default_factory=list)
    incidence: list[tuple[int, int, float]] = field(default_factory=list)
    crowding: CrowdingChange = field(default_factory=CrowdingChange)
    synonyms: SynonymChange = field(default_factory=SynonymChange)


class _Copies(dict[str, str]):
    def __missing__(self, text: str) -> str:
        self[text] = text
        return text


def _drop(rows: dict[Key, int], key: Key, row: int) -> None:
    """Takes `key` out where it stands for `row`: the same content may have come again."""
    if rows.get(key) == row:
        del rows[key]


class Image:
    """The writer's live state. Only the thread that commits changes it; readers take `store.snapshot.Snapshot`s."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.ids = {name: Growing(np.int32) for name in ("passages", "phrases", "triples")}
        """The tables' number of each row. Purging leaves gaps there; rows here have none when rebuilt from the tables."""
        self.passages: list[PassageText] = []
        self.passage_rows: dict[str, int] = {}
        self.passage_vectors = Vectors(dim)
        self.phrases: list[str] = []
        self.phrase_rows: dict[str, int] = {}
        self.phrase_vectors = Vectors(dim)
        self.sketches = SketchIndex()
        """Where to look for a phrase's near ones: up to date with `phrase_vectors`."""
        self.linkable = Growing(np.bool_)
        self.wordings = Growing(np.int64)
        """By phrase: `store.index.synonyms.wordings`."""
        self.predicates: list[str] = []
        self.triple_ends = Growing(np.int32, 2)
        self.triple_rows: dict[TripleKey, int] = {}
        self.triple_vectors = Vectors(dim)

        self.passage_counts = Counts()
        self.phrase_counts = Counts()
        self.triple_counts = Counts()
        self.crowding = Crowding()
        self.synonym_needs = Growing(np.float32)
        """By phrase: the cosine that another needs to be among its nearest (`store.synonyms.SynonymPlanner.needs`)."""

        self.relation = LiveMatrix()
        self.synonym = LiveMatrix()
        self.context = LiveMatrix()
        self.incidence = LiveMatrix()
        self.postings = Postings()
        self.total_length = 0

        self.documents: dict[str, Document] = {}
        self.users: list[dict[str, Given]] = []
        self.extracted: list[NDArray[np.int32] | None] = []
        self.extraction_states: dict[int, ExtractionState] = {}
        self.effective: list[NDArray[np.int32]] = []
        self.next_id = {"passages": 0, "phrases": 0, "triples": 0}
        self.forgotten = 0
        """How many rows here the tables no longer have."""
        self.living_passages = 0
        self.living_phrases = 0
        self.living_triples = 0

    @property
    def matrices(self) -> dict[str, LiveMatrix]:
        return {
            "relation": self.relation,
            "synonym": self.synonym,
            "context": self.context,
            "incidence": self.incidence,
        }

    def shape(self, name: str) -> tuple[int, int]:
        """The present shape of one of `matrices`."""
        phrases, passages, triples = len(self.phrases), len(self.passages), len(self.predicates)
        return {
            "relation": (phrases, phrases),
            "synonym": (phrases, phrases),
            "context": (passages, phrases),
            "incidence": (passages, triples),
        }[name]

    @property
    def many(self) -> bool:
        """Whether there are so many phrases that synonyms are found through the bands of their sketches."""
        return len(self.phrases) > EXACT_BELOW

    def present(self) -> NDArray[np.bool_]:
        """Which phrases can have synonyms unless they are crowded, shape (phrases,): they live, are long enough and no
        numbers, and the encoder knows something of them."""
        alive: NDArray[np.bool_] = self.phrase_counts.view().array() > 0
        return alive & self.linkable.view() & self.phrase_vectors.view().known

    def triple(self, row: int) -> Triple:
        subject, object_ = self.triple_ends.view()[row]
        return self.phrases[subject], self.predicates[row], self.phrases[object_]

    def copies(self) -> Callable[[str], str]:
        """Gives the copy of a phrase, predicate or passage id that is held already: documents name the same over and over.

        O(everything), for who asks for many.
        """
        held = _Copies(zip(self.phrases, self.phrases, strict=True))
        held.update((text, text) for text in set(self.predicates))
        held.update((passage.id, passage.id) for passage in self.passages)
        return held.__getitem__

    def _number(self, name: str, count: int, ids: NDArray[np.int32] | None) -> None:
        first = self.next_id[name]
        self.ids[name].extend(np.arange(first, first + count) if ids is None else ids)

    def add_passages(self, passages: list[PassageText], ids: NDArray[np.int32] | None = None) -> None:
        """Appends passages, not living yet; their vectors are appended apart.

        `ids` are their numbers in the tables, by default the next ones; here and below.
        """
        self._number("passages", len(passages), ids)
        for passage in passages:
            row = len(self.passages)
            self.passages.append(passage)
            self.users.append({})
            self.extracted.append(None)
            self.effective.append(NOTHING)
            self.postings.extend(row, passage.full)
            self.passage_rows[passage.id] = row  # last: who finds it there asks for the rest
        self.passage_counts.grow(len(self.passages))

    def add_phrases(self, phrases: list[str], ids: NDArray[np.int32] | None = None) -> None:
        self._number("phrases", len(phrases), ids)
        for phrase in phrases:
            self.phrase_rows[phrase] = len(self.phrases)
            self.phrases.append(phrase)
        self.linkable.extend([linkable(phrase) for phrase in phrases])
        self.wordings.extend(wordings(phrases))
        self.synonym_needs.extend(np.zeros(len(phrases)))
        self.crowding.rows.grow(len(self.phrases))
        self.phrase_counts.grow(len(self.phrases))

    def add_triples(self, triples: list[TripleKey], ids: NDArray[np.int32] | None = None) -> None:
        self._number("triples", len(triples), ids)
        for key in triples:
            self.triple_rows[key] = len(self.predicates)
            self.predicates.append(key[1])
        self.triple_ends.extend(np.array([(key[0], key[2]) for key in triples], np.int32).reshape(-1, 2))
        self.triple_counts.grow(len(self.predicates))

    def apply(self, delta: Delta) -> None:
        """Takes over what has been written. Nothing here may fail: the tables already hold it."""
        self.add_passages(delta.passages)
        self.add_phrases(delta.phrases)
        self.add_triples(delta.triples)
        for name in self.next_id:
            self.next_id[name] += len(getattr(delta, name))
        for vectors, added in (
            (self.passage_vectors, delta.passage_vectors),
            (self.phrase_vectors, delta.phrase_vectors),
            (self.triple_vectors, delta.triple_vectors),
        ):
            if added:
                vectors.extend(np.stack(added))
        self.sketches.extend(self.phrase_vectors)
        for document in delta.documents:
            self.documents[document.uri] = document
        for uri in delta.removed:
            self.documents.pop(uri, None)
        for extraction in delta.extractions:
            row = self.passage_rows[extraction.passage]
            self.extracted[row] = delta.extracted[row]
            self.extraction_states[row] = extraction.state
        for row, users in delta.users.items():
            self.users[row] = users
        for row, effective in delta.effective.items():
            self.effective[row] = effective
        self._count(delta)
        for name in ("relation", "context", "incidence"):
            self._edges(self.matrices[name], getattr(delta, name))
        self.crowding.apply(delta.crowding)
        self._synonyms(delta.synonyms)

    def _count(self, delta: Delta) -> None:
        for row, change in delta.passage_changes.items():
            now = self.passage_counts.add(row, change)
            step = (now > 0) - (now - change > 0)
            self.living_passages += step
            self.total_length += step * self.postings.length(row)
        for row, change in delta.phrase_changes.items():
            now = self.phrase_counts.add(row, change)
            self.living_phrases += (now > 0) - (now - change > 0)
        for row, change in delta.triple_changes.items():
            now = self.triple_counts.add(row, change)
            self.living_triples += (now > 0) - (now - change > 0)

    @staticmethod
    def _edges(matrix: LiveMatrix, changes: list[tuple[int, int, float]]) -> None:
        if changes:
            rows, cols, values = (np.array(part) for part in zip(*changes, strict=True))
            matrix.add(rows, cols, values)

    def prepare(self, cap: int) -> None:
        """Works out, at opening, what commits need to know of the synonyms and queries do not. O(phrases and edges)."""
        self.crowding.load(self.sketches.view(), self.present())
        self.synonym_needs.put(np.arange(self.synonym_needs.n), np.zeros(self.synonym_needs.n))
        view = self.synonym.view(self.shape("synonym"))
        degrees = np.diff(view.merged().indptr) if len(self.phrases) else np.empty(0, np.int64)
        full = np.flatnonzero(degrees >= cap)
        for start in range(0, len(full), PREPARED_PHRASES):
            rows, others, weights = view.entries(full[start : start + PREPARED_PHRASES])
            nearest = Nearest(cap, self.phrases.__getitem__)
            nearest.add(rows.astype(np.int64), others.astype(np.int64), weights)
            self.synonym_needs.put(*needed(nearest.pairs(), cap))

    def _synonyms(self, change: SynonymChange) -> None:
        self.synonym_needs.put(change.rows, change.needs)
        if len(change.a):
            moved = change.weights - change.before
            ends = np.concatenate([change.a, change.b]), np.concatenate([change.b, change.a])
            self.synonym.add(*ends, np.concatenate([moved, moved]))

    def forget(self, contents: str, rows: Sequence[int]) -> None:
        """Passages, phrases or triples (`contents`) that left the tables, with what was read of them: should the same content
        come back, it comes as new."""
        ends = self.triple_ends.view()
        for row in rows:
            if contents == "passages":
                _drop(self.passage_rows, self.passages[row].id, row)
                self.extracted[row] = None
                self.extraction_states.pop(row, None)
            elif contents == "phrases":
                _drop(self.phrase_rows, self.phrases[row], row)
            else:
                _drop(self.triple_rows, (int(ends[row, 0]), self.predicates[row], int(ends[row, 1])), row)
        self.forgotten += len(rows)

    def number_after(self, old: "Image") -> None:
        """Takes the place of `old`. The number of a purged row is not given again: a snapshot on disk may still know it as what
        it was."""
        self.next_id = {name: max(number, old.next_id[name]) for name, number in self.next_id.items()}

    def past(self) -> "Image":
        """An image of the same contents in which nothing lives yet: to be filled with the documents of an earlier commit.

        For the writer to call, some 20 ms a million phrases; what it returns stays as it is while commits go on.
        """
        then = Image(self.dim)
        for name in SHARED:
            setattr(then, name, getattr(self, name))
        for name in COPIED:
            setattr(then, name, list(getattr(self, name)))
        for name, ids in self.ids.items():
            then.ids[name] = ids.frozen()
        then.triple_ends = self.triple_ends.frozen()
        for vectors in ("passage_vectors", "phrase_vectors", "triple_vectors"):
            setattr(then, vectors, getattr(self, vectors).frozen())
        n = len(then.passages)
        then.users = [{} for _ in range(n)]
        then.extracted = [None] * n
        then.effective = [NOTHING] * n
        return then

    def stored(self) -> dict[str, Any]:
        """How much of everything there is, living or not: for `doctor` and metrics."""
        return {"passages": len(self.passages), "phrases": len(self.phrases), "triples": len(self.predicates)}
