"""The live index: everything that a query needs, and the only place where a commit changes it.

Rows number passages, phrases and triples in the order of their first appearance. No row number is reused. Counts decide what is
alive: a passage counts its documents; a triple and a phrase count the living passages that contain them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.append_only_arrays import Counts, GrowableArray
from store.index.bm25 import Postings
from store.index.columns.hashed_rows import HashedRows, TextRows
from store.index.columns.holders import Holders
from store.index.columns.passages import Passages
from store.index.columns.row_lists import NO_ROWS, RowLists
from store.index.columns.texts import Texts
from store.index.delta_csr import LiveMatrix
from store.index.file_arrays import IN_MEMORY, ArrayStorage
from store.index.index_delta import IndexDelta, TripleKey
from store.index.live_link_targets import LiveLinkTargets
from store.index.synonyms.crowding import Crowding
from store.index.synonyms.edge_maintenance import SynonymChange
from store.index.synonyms.search import EXACT_BELOW, linkable
from store.index.synonyms.sketch_index import SketchIndex
from store.index.triple_rows import TripleRows
from store.index.vectors.matrix import Vectors
from store.types import DEFAULT_SYNONYM_RULE, MENTION, Document, ExtractionState, PassageText, SynonymRule, Triple

SHARED_ATTRIBUTES = ("passage_rows", "phrase_rows", "triple_rows", "postings", "next_id")
"""Attributes that describe texts and are valid at every commit. Readers access one entry of them at a time."""

GROWING_ATTRIBUTES = ("passages", "phrases", "predicates")
"""Attributes that describe texts and would grow while a reader uses them."""


class _InternedTexts(dict[str, str]):
    def __missing__(self, text: str) -> str:
        self[text] = text
        return text


class LiveIndex:
    """The state as of the last commit. Only the committing thread changes it; a query reads a `store.snapshot.Snapshot`."""

    def __init__(self, dim: int, storage: ArrayStorage = IN_MEMORY, rule: SynonymRule = DEFAULT_SYNONYM_RULE) -> None:
        """`storage`: allocates the large arrays. `rule`: decides which phrases are synonyms."""
        self.dim = dim
        self.rule = rule
        self.storage = storage
        self.ids = {name: GrowableArray(np.int32, storage=storage) for name in ("passages", "phrases", "triples")}
        """The column `row` of the tables, by row of the index. Purging leaves gaps in the column; a rebuilt index has no gaps.
        """
        self.passages = Passages()
        self.phrases = Texts()
        self.predicates = Texts()
        self.triple_ends = GrowableArray(np.int32, 2, storage)
        self.statements = GrowableArray(np.bool_, storage=storage)
        """By triple: whether it is a statement rather than a mention edge."""
        self.hashed_rows: dict[str, HashedRows[Any]] = {
            "passages": TextRows(self.passages.ids, storage),
            "phrases": TextRows(self.phrases, storage),
            "triples": TripleRows(self.triple_ends, self.predicates, storage),
        }
        self.passage_rows: HashedRows[str] | dict[str, int] = self.hashed_rows["passages"]
        self.phrase_rows: HashedRows[str] | dict[str, int] = self.hashed_rows["phrases"]
        self.triple_rows: HashedRows[TripleKey] | dict[TripleKey, int] = self.hashed_rows["triples"]
        """A scope uses the map of the whole memory instead."""
        self.passage_vectors = Vectors(dim, storage)
        self.phrase_vectors = Vectors(dim, storage)
        self.sketches = SketchIndex(rule.threshold, storage)
        """Finds candidates for a phrase's nearest phrases. Has a sketch for each of `phrase_vectors`."""
        self.linkable = GrowableArray(np.bool_, storage=storage)
        self.triple_vectors = Vectors(dim, storage)

        self._present: GrowableArray[np.bool_] | None = None
        self.passage_counts = Counts()
        self.phrase_counts = Counts()
        self.triple_counts = Counts()
        self.crowding = Crowding()

        self.relation = LiveMatrix()
        self.mention = LiveMatrix()
        self.synonym = LiveMatrix()
        self.context = LiveMatrix()
        self.incidence = LiveMatrix()
        self.postings = Postings()
        self.total_length = 0

        self.names = Texts()
        """The names of documents (`store.links.names.names_text`). A row that no document uses any more is not reused."""
        self.name_rows: HashedRows[str] | dict[str, int] = TextRows(self.names, storage)
        self.name_postings = Postings()
        self.naming = LiveMatrix()
        """Names x passages: the number of documents with these names that contain the passage."""
        self.name_counts = Counts()
        """By row of `names`: the sum of its entries in `naming`."""

        self.documents: dict[str, Document] = {}
        self.link_targets = LiveLinkTargets(lambda: self.documents)
        self.holders = Holders()
        self.extracted: RowLists[NDArray[np.int32] | None] = RowLists()
        self.extraction_states: dict[int, ExtractionState] = {}
        self.effective: RowLists[NDArray[np.int32]] = RowLists()
        self.next_id = {"passages": 0, "phrases": 0, "triples": 0}
        self.purged_rows = 0
        """Number of rows that were purged from the tables."""
        self.living_passages = 0
        self.living_phrases = 0
        self.living_triples = 0
        self.living_statements = 0

    @property
    def matrices(self) -> dict[str, LiveMatrix]:
        return {
            "relation": self.relation,
            "mention": self.mention,
            "synonym": self.synonym,
            "context": self.context,
            "incidence": self.incidence,
            "naming": self.naming,
        }

    @property
    def folded_rows(self) -> dict[str, HashedRows[Any]]:
        """The maps from text to row that are folded regularly: by table, and that of the names."""
        names = {"names": self.name_rows} if isinstance(self.name_rows, HashedRows) else {}
        return {**self.hashed_rows, **names}

    @property
    def vectors(self) -> dict[str, Vectors]:
        """By table, like `ids`."""
        return {"passages": self.passage_vectors, "phrases": self.phrase_vectors, "triples": self.triple_vectors}

    def shape(self, name: str) -> tuple[int, int]:
        """Returns the present shape of one of `matrices`."""
        phrases, passages, triples = len(self.phrases), len(self.passages), len(self.predicates)
        return {
            "relation": (phrases, phrases),
            "mention": (phrases, phrases),
            "synonym": (phrases, phrases),
            "context": (passages, phrases),
            "incidence": (passages, triples),
            "naming": (len(self.names), passages),
        }[name]

    @property
    def uses_bands(self) -> bool:
        """Whether the index has so many phrases that the bands of their sketches are used to search synonyms."""
        return len(self.phrases) > EXACT_BELOW

    def synonym_candidates(self) -> NDArray[np.bool_]:
        """Returns the mask of the phrases that have synonyms unless they are crowded, shape (phrases,).

        They are alive, long enough and not numbers, and their vector is not zero.
        """
        alive: NDArray[np.bool_] = self.phrase_counts.view().positive()
        return alive & self.linkable.view() & self.phrase_vectors.view().known

    def present_phrases(self) -> NDArray[np.bool_]:
        """Returns `synonym_candidates`, updated incrementally at each commit. For the writer, which must not change it."""
        if self._present is None:
            self._present = GrowableArray(np.bool_)
            self._present.load(self.synonym_candidates())
        return self._present.view()

    def counts_loaded(self) -> None:
        """Invalidates the cached `present_phrases` after all counts were replaced."""
        self._present = None

    def triple(self, row: int) -> Triple:
        subject, object_ = self.triple_ends.view()[row]
        return self.phrases[subject], self.predicates[row], self.phrases[object_]

    def interner(self) -> Callable[[str], str]:
        """Returns a function from a text to its single copy in memory; documents repeat the same phrases.

        O(texts outside the checkpoint), so it pays only for many texts.
        """
        interned = _InternedTexts()
        for texts in (self.phrases.in_memory, self.passages.ids.in_memory, self.predicates.in_memory):
            interned.update(zip(texts, texts, strict=True))
        return interned.__getitem__

    def _number(self, name: str, count: int, ids: NDArray[np.int32] | None) -> None:
        first = self.next_id[name]
        self.ids[name].extend(np.arange(first, first + count) if ids is None else ids)

    def add_passages(self, passages: list[PassageText], ids: NDArray[np.int32] | None = None) -> None:
        """Appends passages that are not alive yet. The caller appends their vectors.

        `ids`: their row numbers in the tables, by default the next ones. The other `add_` methods do the same.
        """
        self._number("passages", len(passages), ids)
        for passage in passages:
            row = len(self.passages)
            self.passages.append(passage)
            self.holders.append({})
            self.extracted.append(None)
            self.effective.append(NO_ROWS)
            self.postings.extend(row, passage.full)
            self.passage_rows[passage.id] = row  # last: a reader that finds the passage here reads the other columns
        self.passage_counts.grow(len(self.passages))

    def add_phrases(self, phrases: list[str], ids: NDArray[np.int32] | None = None) -> None:
        self._number("phrases", len(phrases), ids)
        first = len(self.phrases)
        self.phrases.extend(phrases)
        self.linkable.extend([linkable(phrase) for phrase in phrases])
        self.crowding.rows.grow(len(self.phrases))
        self.phrase_counts.grow(len(self.phrases))
        if self._present is not None:
            self._present.extend(np.zeros(len(phrases)))
        for row, phrase in enumerate(phrases, first):  # last, as in `add_passages`
            self.phrase_rows[phrase] = row

    def add_triples(self, triples: list[TripleKey], ids: NDArray[np.int32] | None = None) -> None:
        self._number("triples", len(triples), ids)
        first = len(self.predicates)
        self.predicates.extend(predicate for _, predicate, _ in triples)
        self.triple_ends.extend(np.array([(key[0], key[2]) for key in triples], np.int32).reshape(-1, 2))
        self.statements.extend([predicate != MENTION for _, predicate, _ in triples])
        self.triple_counts.grow(len(self.predicates))
        for row, key in enumerate(triples, first):  # last, as in `add_passages`
            self.triple_rows[key] = row

    def add_names(self, names: Sequence[str]) -> None:
        """Appends names of documents; no passage has them yet."""
        for text in names:
            row = len(self.names)
            self.names.append(text)
            self.name_postings.extend(row, text)
            self.name_rows[text] = row
        self.name_counts.grow(len(self.names))

    def swap_in_naming(self, naming: Any) -> None:
        """Replaces the matrix `naming` by a CSR and recomputes `name_counts`."""
        self.naming.swap_in(naming, 0)
        self.name_counts = Counts()
        self.name_counts.load(np.asarray(naming.sum(axis=1)).ravel().astype(np.int32))

    def change_names(self, changes: Sequence[tuple[int, int, float]]) -> None:
        """Changes entries of `naming`, and removes names that no document has any more from the map."""
        self._edges(self.naming, list(changes))
        moved: dict[int, int] = {}
        for row, _, change in changes:
            moved[row] = moved.get(row, 0) + int(change)
        gone = [row for row, change in moved.items() if change and not self.name_counts.add(row, change)]
        if isinstance(self.name_rows, HashedRows):
            self.name_rows.discard(gone)
        else:
            for row in gone:
                self.name_rows.pop(self.names[row], None)

    def apply(self, delta: IndexDelta) -> None:
        """Applies a change that is already in the tables. Nothing in this method may fail."""
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
            if len(added):
                vectors.append(added)
        self.sketches.append(delta.phrase_sketches)
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
        for row, effective in delta.effective.items():
            self.effective[row] = effective
        self._count(delta)
        for name in ("relation", "mention", "context", "incidence"):
            self._edges(self.matrices[name], getattr(delta, name))
        self.add_names(delta.names)
        self.change_names(delta.naming)
        self.crowding.apply(delta.crowding)
        self.change_synonyms(delta.synonyms)

    def _count(self, delta: IndexDelta) -> None:
        for row, change in delta.passage_changes.items():
            now = self.passage_counts.add(row, change)
            step = (now > 0) - (now - change > 0)
            self.living_passages += step
            self.total_length += step * self.postings.length(row)
        linkable_rows, known = self.linkable.view(), self.phrase_vectors.view().known
        for row, change in delta.phrase_changes.items():
            now = self.phrase_counts.add(row, change)
            self.living_phrases += (now > 0) - (now - change > 0)
            if self._present is not None:
                self._present.put(row, now > 0 and linkable_rows[row] and known[row])
        statements = self.statements.view()
        for row, change in delta.triple_changes.items():
            now = self.triple_counts.add(row, change)
            step = (now > 0) - (now - change > 0)
            self.living_triples += step
            self.living_statements += step * int(statements[row])

    @staticmethod
    def _edges(matrix: LiveMatrix, changes: list[tuple[int, int, float]]) -> None:
        if changes:
            rows, cols, values = (np.array(part) for part in zip(*changes, strict=True))
            matrix.add(rows, cols, values)

    def sketch_phrases(self) -> None:
        """Sketches the phrases without a sketch at opening, and sorts the sketches if many are unsorted."""
        self.sketches.extend(self.phrase_vectors)
        if self.sketches.due:
            self.sketches.sort(self.phrase_vectors, self.storage)

    def count_crowds(self, maybe: NDArray[np.bool_] | None = None) -> None:
        """Determines the crowded phrases. `maybe`: mask of the phrases that can be crowded, shape (phrases,), if known."""
        self.crowding.load(self.sketches.signs(), self.synonym_candidates(), maybe)

    def change_synonyms(self, change: SynonymChange) -> None:
        if len(change.a):
            moved = change.weights - change.before
            ends = np.concatenate([change.a, change.b]), np.concatenate([change.b, change.a])
            self.synonym.add(*ends, np.concatenate([moved, moved]))

    def forget(self, contents: str, rows: Sequence[int]) -> None:
        """Removes purged passages, phrases or triples (`contents`) from the maps, and the passages' extractions.

        If the same text is added again, it gets a new row.
        """
        for row in rows if contents == "passages" else ():
            self.extracted[row] = None
            self.extraction_states.pop(row, None)
        self.hashed_rows[contents].discard(rows)
        self.purged_rows += len(rows)

    def keep_numbering_of(self, old: "LiveIndex") -> None:
        """Continues the row numbering of `old`, the index that this index replaces.

        A checkpoint on disk may still refer to a purged row, so its number must not be reused.
        """
        self.next_id = {name: max(number, old.next_id[name]) for name, number in self.next_id.items()}

    def without_documents(self) -> "LiveIndex":
        """Returns an index of the same texts and vectors without documents, to be filled with those of an earlier commit.

        The caller holds the write lock, about 20 ms for a million phrases. Later commits do not change the returned index.
        """
        then = LiveIndex(self.dim, self.storage, self.rule)
        for name in SHARED_ATTRIBUTES:
            setattr(then, name, getattr(self, name))
        for name in GROWING_ATTRIBUTES:
            setattr(then, name, getattr(self, name).frozen())
        for name, ids in self.ids.items():
            then.ids[name] = ids.frozen()
        then.triple_ends, then.statements = self.triple_ends.frozen(), self.statements.frozen()
        for vectors in ("passage_vectors", "phrase_vectors", "triple_vectors"):
            setattr(then, vectors, getattr(self, vectors).frozen())
        then.linkable = self.linkable.frozen()
        then.sketches = self.sketches.frozen()
        n = len(then.passages)
        then.holders.extend({} for _ in range(n))
        then.extracted.extend([None] * n)
        then.effective.extend([NO_ROWS] * n)
        return then

    def stored(self) -> dict[str, Any]:
        """Returns the numbers of all contents, living or not, for `doctor` and metrics."""
        return {"passages": len(self.passages), "phrases": len(self.phrases), "triples": len(self.predicates)}
