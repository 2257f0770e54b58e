"""The live index: all data that queries need, and the only place where commits change these data.

Rows number passages, phrases and triples in the order of their first appearance. A row number is never reused. Counts decide
which rows are living: the count of a passage is its number of documents; the count of a triple or phrase is the number of
living passages that contain it.
"""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any
from weakref import proxy

import numpy as np
from numpy.typing import NDArray

from store.index.append_only_arrays import Counts, GrowableArray
from store.index.columns.hashed_rows import HashedRows, TextRows, TripleKey, TripleRows
from store.index.columns.holders import Holders, StoredDocuments
from store.index.columns.keyed_texts import KeyedTexts
from store.index.columns.row_lists import ExtractionStates, ListArrays, RowLists
from store.index.columns.texts import Passages, SelectedTexts, Texts
from store.index.delta_csr import LiveMatrix
from store.index.document_names import IndexedNames
from store.index.file_arrays import IN_MEMORY, ArrayStorage
from store.index.index_delta import IndexDelta
from store.index.part import Foldable, Part
from store.index.shared_rows import BorrowedRows, SharedSketches
from store.index.synonyms.crowding import Crowding
from store.index.synonyms.pairs import SynonymChange
from store.index.synonyms.search import EXACT_BELOW, can_have_synonyms
from store.index.synonyms.sketch_index import SketchIndex
from store.index.triple_change import CountChange, Entries, count_change
from store.index.vectors.matrix import Vectors
from store.index.words.postings import Postings
from store.links.targets import LinkTargets
from store.rows import Rows64
from store.types import DEFAULT_SYNONYM_RULE, MENTION, Document, PassageText, SynonymRule, Triple

KINDS = ("passages", "phrases", "triples")
"""The kinds of rows, named like their tables."""

MATRICES = {
    "relation": ("phrases", "phrases"),
    "mention": ("phrases", "phrases"),
    "synonym": ("phrases", "phrases"),
    "context": ("passages", "phrases"),
    "incidence": ("passages", "triples"),
    "naming": ("names", "passages"),
}
"""The kinds of the rows and columns of each matrix."""


@dataclass(slots=True)
class Totals:
    """The numbers of living rows, in total. `words`: the number of words of all living passages."""

    passages: int = 0
    phrases: int = 0
    triples: int = 0
    statements: int = 0
    words: int = 0


class LiveIndex:
    """The state as of the last commit. Only the committing thread changes it; queries read a `store.snapshot.Snapshot`."""

    def __init__(self, dim: int, storage: ArrayStorage = IN_MEMORY, rule: SynonymRule = DEFAULT_SYNONYM_RULE) -> None:
        """`storage`: allocates the large arrays. `rule`: decides which pairs of phrases are synonyms."""
        self.dim = dim
        self.rule = rule
        self.storage = storage

        # The contents of the rows, which are valid at every commit.
        self.ids = {name: GrowableArray(np.int32, storage=storage) for name in KINDS}
        """For each row of the index: its value in the tables' column `row`. Purging leaves gaps; a rebuilt index has none."""
        self.next_id = dict.fromkeys(KINDS, 0)
        self.passages = Passages()
        self.phrases = Texts()
        self.predicates = Texts()
        self.triple_ends = GrowableArray(np.int32, 2, storage)
        self.statements = GrowableArray(np.bool_, storage=storage)
        """For each triple: whether it is a statement rather than a mention edge."""
        self.can_have_synonyms = GrowableArray(np.bool_, storage=storage)
        self.hashed_rows: dict[str, HashedRows[Any]] = {
            "passages": TextRows(self.passages.ids, storage),
            "phrases": TextRows(self.phrases, storage),
            "triples": TripleRows(self.triple_ends, self.predicates, storage),
        }
        self.passage_rows: HashedRows[str] | dict[str, int] = self.hashed_rows["passages"]
        self.phrase_rows: HashedRows[str] | dict[str, int] = self.hashed_rows["phrases"]
        self.triple_rows: HashedRows[TripleKey] | dict[TripleKey, int] = self.hashed_rows["triples"]
        """In a scope, these three attributes are maps that look up the whole memory."""
        self.vectors = {name: Vectors(dim, storage) for name in KINDS}
        self.sketches = SketchIndex(rule.threshold, self.phrase_vectors, storage)
        """Finds the phrases that may be near a phrase. The sketch index has a sketch for each phrase vector."""
        self.postings = Postings(storage=storage)
        """The words of passages."""
        self.purged_rows = 0
        """Number of rows that were purged from the tables but are still in the index."""
        self.shares_rows = False
        """Whether the texts, vectors and sketches belong to another index (`share_rows`)."""

        # The state of the rows according to the documents of the last commit.
        self.documents: dict[str, Document] = {}
        self.link_targets = LinkTargets(self.documents)
        self.holders = Holders()
        self.extracted: RowLists[NDArray[np.int32] | None] = RowLists(empty=None)
        self.extraction_states = ExtractionStates()
        self.names = IndexedNames(storage)
        self.counts = {name: Counts() for name in KINDS}
        """For each row: the number of documents of a passage, or the number of living passages that contain a phrase or
        triple."""
        self.crowding = Crowding()
        self.matrices = {name: LiveMatrix(self._shape(*kinds)) for name, kinds in MATRICES.items()}
        """The edges, by kind. `naming`: the number of documents with these names that contain the passage."""
        self.living = Totals()

    def _shape(self, rows: str, columns: str) -> Callable[[], tuple[int, int]]:
        index = proxy(self)  # no part refers to its index, so a replaced index is freed without a garbage collection
        return lambda: (index.size(rows), index.size(columns))

    def size(self, kind: str) -> int:
        """Returns the number of rows of a kind, living or not."""
        columns: dict[str, Sized] = {
            "passages": self.passages,
            "phrases": self.phrases,
            "triples": self.predicates,
            "names": self.names,
        }
        return len(columns[kind])

    @property
    def passage_vectors(self) -> Vectors:
        return self.vectors["passages"]

    @property
    def phrase_vectors(self) -> Vectors:
        return self.vectors["phrases"]

    @property
    def triple_vectors(self) -> Vectors:
        return self.vectors["triples"]

    def parts(self) -> list[tuple[str, Part]]:
        """Returns all structures, each with the prefix of its files' names. No other list of all structures exists."""
        texts = self.passages
        columns: dict[str, Mapping[str, Texts]] = {
            "passages": {"passages-names": texts.ids, "passages-titles": texts.titles, "passages-texts": texts.texts},
            "phrases": {"phrases": self.phrases},
            "triples": {"predicates": self.predicates},
        }
        words = {"passages": {"postings": self.postings}}
        return [
            *((name, KeyedTexts(self.hashed_rows[name], columns[name], words.get(name))) for name in columns),
            *self.names.parts(),
            *((f"{name}-ids", ids) for name, ids in self.ids.items()),
            ("triples-ends", self.triple_ends),
            ("triples-statements", self.statements),
            ("phrases-linkable", self.can_have_synonyms),
            *self.vectors.items(),
            ("phrases", self.sketches),
            ("documents", StoredDocuments(self.documents, self.holders, self.passages.ids)),
            ("extracted", self.extracted),
            ("extraction-states", self.extraction_states),
            *((f"{name}-counts", counts) for name, counts in self.counts.items()),
            ("crowding", self.crowding),
            *self.matrices.items(),
        ]

    @property
    def uses_bands(self) -> bool:
        """Whether the index has so many phrases that synonyms are searched through the bands of the sketches."""
        return len(self.phrases) > EXACT_BELOW

    def foldable(self) -> list[Foldable]:
        """Returns the structures whose changes are regularly merged into their bases."""
        return [*self.matrices.values(), *self.hashed_rows.values(), self.names.rows, self.sketches]

    def synonym_candidates(self) -> NDArray[np.bool_]:
        """Returns the mask of the phrases that can have synonyms unless they are crowded: living phrases with a vector, except
        numbers."""
        alive: NDArray[np.bool_] = self.counts["phrases"].view().positive()
        return alive & self.can_have_synonyms.view() & self.phrase_vectors.view().known

    def recount(self) -> None:
        """Computes the totals after all counts were replaced."""
        alive = {name: counts.view().positive() for name, counts in self.counts.items()}
        passages, phrases, triples = (int(np.count_nonzero(alive[name])) for name in KINDS)
        statements = int(np.count_nonzero(alive["triples"] & self.statements.view()))
        words = int(self.postings.lengths(len(self.passages))[alive["passages"]].sum(dtype=np.int64))
        self.living = Totals(passages, phrases, triples, statements, words)

    def triple(self, row: int) -> Triple:
        subject, object_ = self.triple_ends.view()[row]
        return self.phrases[subject], self.predicates[row], self.phrases[object_]

    def content(self, kind: str, row: int) -> Any:
        """Returns the passage, phrase or triple in a row."""
        if kind == "passages":
            return self.passages[row]
        return self.phrases[row] if kind == "phrases" else self.triple(row)

    def triple_row(self, triple: Triple) -> int | None:
        subject, object_ = self.phrase_rows.get(triple[0]), self.phrase_rows.get(triple[2])
        return None if subject is None or object_ is None else self.triple_rows.get((subject, triple[1], object_))

    def triples_of(self, passages: Rows64) -> ListArrays:
        """Returns the triples (rows) of `passages` (rows, ascending). Passages after the end of the index have no triples."""
        known = passages[: np.searchsorted(passages, len(self.passages))]
        owners, triples, _ = self.matrices["incidence"].view().entries(known)
        starts = np.append(np.searchsorted(owners, passages), len(owners))
        return ListArrays(starts, triples, np.zeros(len(passages), np.bool_))

    def _number(self, name: str, count: int, ids: NDArray[np.int32] | None) -> None:
        first = self.next_id[name]
        self.ids[name].extend(np.arange(first, first + count) if ids is None else ids)

    def grow(self) -> None:
        """Extends all columns to the present number of rows; new rows are not living."""
        for name, counts in self.counts.items():
            counts.grow(self.size(name))
        for column in (self.holders, self.extracted):
            column.grow(len(self.passages))

    def add_passages(self, passages: list[PassageText], ids: NDArray[np.int32] | None = None) -> None:
        """Appends passages, which are not living yet. The caller must append their vectors.

        `ids`: the passages' row numbers in the table, by default the next. The other `add_` methods have the same contract.
        """
        self._number("passages", len(passages), ids)
        first = len(self.passages)
        for row, passage in enumerate(passages, first):
            self.postings.extend(row, passage.full)
            self.passages.append(passage)
        self.grow()
        for row, passage in enumerate(passages, first):
            self.passage_rows[passage.id] = row  # last: a reader that finds the passage here reads the other columns

    def add_phrases(self, phrases: list[str], ids: NDArray[np.int32] | None = None) -> None:
        self._number("phrases", len(phrases), ids)
        first = len(self.phrases)
        self.phrases.extend(phrases)
        self.can_have_synonyms.extend([can_have_synonyms(phrase) for phrase in phrases])
        self.grow()
        for row, phrase in enumerate(phrases, first):  # last, as in `add_passages`
            self.phrase_rows[phrase] = row

    def add_triples(self, triples: list[TripleKey], ids: NDArray[np.int32] | None = None) -> None:
        self._number("triples", len(triples), ids)
        first = len(self.predicates)
        self.predicates.extend(predicate for _, predicate, _ in triples)
        self.triple_ends.extend(np.array([(key[0], key[2]) for key in triples], np.int32).reshape(-1, 2))
        self.statements.extend([predicate != MENTION for _, predicate, _ in triples])
        self.grow()
        for row, key in enumerate(triples, first):  # last, as in `add_passages`
            self.triple_rows[key] = row

    def change_names(self, entries: Entries) -> None:
        """Changes entries of `naming` and the counts of names."""
        rows, _, values = entries
        if len(rows):
            self.matrices["naming"].add(*entries)
            self.names.change(count_change(rows, values))

    def apply(self, delta: IndexDelta) -> None:
        """Applies the change of a durable commit. If this fails, the index must be loaded again (`LiveMemory.apply`)."""
        self.add_passages(delta.passages)
        self.add_phrases(delta.phrases)
        self.add_triples(delta.triples)
        for name, added in (
            ("passages", delta.passage_vectors),
            ("phrases", delta.phrase_vectors),
            ("triples", delta.triple_vectors),
        ):
            self.next_id[name] += len(added)
            if len(added):
                self.vectors[name].append(added)
        self.sketches.append(delta.phrase_sketches)
        self.change_documents(delta)

    def change_documents(self, delta: IndexDelta) -> None:
        """Applies the changes of documents and extractions, and all that follow from them; the index must have the texts."""
        for document in delta.documents:
            self.documents[document.uri] = document
        for uri in delta.removed:
            self.documents.pop(uri, None)
        self.link_targets.change(delta.documents, delta.removed)
        for extraction in delta.extractions:
            row = self.passage_rows[extraction.passage]
            self.extracted[row] = delta.extracted[row]
            self.extraction_states[row] = extraction.state
        for row, holders in delta.holders.items():
            self.holders[row] = holders
        self._count(delta.passage_counts, delta.triple_change.phrases, delta.triple_change.triples)
        for name, entries in delta.triple_change.edges.items():
            self.matrices[name].add(*entries)
        self.names.add(delta.names)
        self.change_names(delta.naming)
        self.crowding.apply(delta.crowding)
        self.change_synonyms(delta.synonyms)

    def _count(self, passages: CountChange, phrases: CountChange, triples: CountChange) -> None:
        def change(name: str, changes: CountChange) -> NDArray[np.int64]:
            """Returns 1 for each row that becomes living, -1 for each row that becomes dead, 0 for other rows."""
            before, now = self.counts[name].change(*changes)
            return now.astype(np.int64) - before

        born = change("passages", passages)
        self.living.passages += int(born.sum())
        self.living.words += int(born @ self.postings.lengths(len(self.passages))[passages[0]])
        self.living.phrases += int(change("phrases", phrases).sum())
        born = change("triples", triples)
        self.living.triples += int(born.sum())
        self.living.statements += int(born @ self.statements.view()[triples[0]])

    def sketch_phrases(self) -> None:
        """Adds the missing sketches of phrases when a store is opened, and sorts the sketches if many are unsorted."""
        self.sketches.extend()
        if self.sketches.due:
            self.sketches.fold()

    def count_crowds(self, maybe: NDArray[np.bool_] | None = None) -> None:
        """Finds the crowded phrases. `maybe`: mask of the phrases that may be crowded, shape (phrases,); None if unknown."""
        self.crowding.count(self.sketches.signs(), self.synonym_candidates(), maybe)

    def change_synonyms(self, change: SynonymChange) -> None:
        if len(change.a):
            moved = change.weights - change.before
            ends = np.concatenate([change.a, change.b]), np.concatenate([change.b, change.a])
            self.matrices["synonym"].add(*ends, np.concatenate([moved, moved]))

    def forget(self, contents: str, rows: Sequence[int]) -> None:
        """Removes purged `contents` (passages, phrases or triples) from the maps. If added again, a text gets a new row."""
        for row in rows if contents == "passages" else ():
            self.extracted[row] = None
            self.extraction_states.pop(row, None)
        self.hashed_rows[contents].discard(rows)
        self.purged_rows += len(rows)

    def keep_numbering_of(self, old: "LiveIndex") -> None:
        """Continues the row numbering of `old`, the index that this one replaces.

        A checkpoint on disk may still refer to a purged row, so its number must not be reused.
        """
        self.next_id = {name: max(number, old.next_id[name]) for name, number in self.next_id.items()}

    def share_rows(self, whole: "LiveIndex") -> None:
        """Shares the present texts, vectors, sketches and words of `whole`; rows that this index lacked before are not living.
        The caller must prevent commits to `whole`. Later commits to `whole` do not change this index."""
        self.shares_rows, self.purged_rows = True, whole.purged_rows
        self.passages = whole.passages.select(range(len(whole.passages)))
        self.phrases = SelectedTexts(whole.phrases, range(len(whole.phrases)))
        self.predicates = SelectedTexts(whole.predicates, range(len(whole.predicates)))
        self.passage_rows = BorrowedRows(whole.passage_rows, range(len(self.passages)))
        self.phrase_rows = BorrowedRows(whole.phrase_rows, range(len(self.phrases)))
        self.triple_rows = BorrowedRows(whole.triple_rows, range(len(self.predicates)))
        self.ids = {name: ids.copy() for name, ids in whole.ids.items()}
        self.next_id = dict(whole.next_id)
        self.vectors = {name: vectors.copy() for name, vectors in whole.vectors.items()}
        self.triple_ends, self.statements = whole.triple_ends.copy(), whole.statements.copy()
        self.can_have_synonyms, self.postings = whole.can_have_synonyms.copy(), whole.postings
        self.sketches = SharedSketches(whole.sketches)
        self.grow()

    def copy(self) -> "LiveIndex":
        """Returns an index with the same rows and documents. Later changes of either index do not affect the other.

        The caller must prevent commits during the call, which takes about 20 ms for a million passages.
        """
        other = LiveIndex(self.dim, rule=self.rule)
        other.share_rows(self)
        other.documents.update(self.documents)
        for column in ("names", "holders", "extracted", "extraction_states", "crowding"):
            setattr(other, column, getattr(self, column).copy())
        other.counts = {name: counts.copy() for name, counts in self.counts.items()}
        for name, matrix in other.matrices.items():
            matrix.share(self.matrices[name])
        other.living = replace(self.living)
        return other

    def stored(self) -> dict[str, int]:
        """Returns the number of rows of each kind, living or not, for `doctor` and metrics."""
        return {name: self.size(name) for name in KINDS}
