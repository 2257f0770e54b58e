"""Retention: determines the rows that no commit within the retention time needs, and the slices in which they are deleted.

A purge marks and sweeps, like a garbage collector. `Purge.slices` alone defines which rows are needed. The roots are the rows
of `documents` that are in effect at the horizon or were added after it. Documents refer to passages and triples, passages to
their extractions, extractions to triples, and triples to phrases. All other rows are deleted.

Rows are deleted in slices. Each slice is a commit that deletes its rows from the tables and the index in one step. The index
therefore matches the tables after every commit, even if the purge ends early. The slices are in an order that leaves the store
consistent after each of them:

1. rows that a newer row replaced, oldest first: a document's removal row is deleted after the rows that it replaced;
2. passages, each with its extraction;
3. triples that no remaining document or extraction states;
4. phrases that no remaining triple contains.

Commits run concurrently with a purge and may use a row marked for deletion, for example if a removed paragraph is added again.
Each commit reports its change to the purge (`Purge.protect_change`), which keeps the rows that the change refers to.
`Purge.protect_batch` does the same for a batch that is being completed: texts that the store reported as known still exist when
the batch is committed, unless a purge began in between.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.triple_change import NO_ENTRIES
from store.lance import schema
from store.lance.last_rows import codes_of, last_rows
from store.lance.tables import CONVERTED_ROWS, TableView
from store.log.extraction_costs import COSTS, costs_of
from store.rows import Rows64
from store.types import Batch, ExtractionCosts, State

PURGE_SLICE_ROWS = 2_000
"""Number of rows of one table that one commit of a purge deletes; the deletion takes about 20 ms."""

NO_ROW = -1


@dataclass(frozen=True, slots=True)
class PurgeSlice:
    """The rows that one commit of a purge deletes.

    `tables`: the rows to delete, by table name, in the columns `_rowid` and `owner`. `_rowid` identifies the row in the table.
    `owner` is the index's row of the passage, phrase or triple to which the row belongs, or -1. `contents`: which kind
    (passages, phrases or triples) the index must remove; None if the index lacks the rows.
    """

    contents: str | None
    tables: Mapping[str, Any]

    def without(self, protected: Iterable[int]) -> "PurgeSlice":
        """Returns the slice without the rows whose owner is in `protected`."""
        among = np.array(sorted(protected), np.int64)
        tables = {
            name: rows.filter(pa.array(~np.isin(rows["owner"].to_numpy(), among))) for name, rows in self.tables.items()
        }
        return PurgeSlice(self.contents, tables)

    def ids(self) -> dict[str, list[int]]:
        """Returns the row ids by table; tables that lose no rows are omitted."""
        return {name: rows["_rowid"].to_pylist() for name, rows in self.tables.items() if rows.num_rows}

    def index_rows(self) -> list[int]:
        """Returns the rows of `contents` that the index must remove."""
        return self.tables[self.contents]["owner"].to_pylist() if self.contents is not None else []

    def costs(self) -> ExtractionCosts:
        """Returns the recorded costs of the deleted extractions."""
        return costs_of(self.tables["extractions"]) if "extractions" in self.tables else {}

    def __len__(self) -> int:
        return sum(rows.num_rows for rows in self.tables.values())


class Purge:
    """One purge, from its beginning to its last slice."""

    def __init__(self, index: LiveIndex, horizon: int, commit: int) -> None:
        """`commit` is the last commit; the purge ignores later rows. Must be called by the writer between two commits.

        The purge identifies rows by their numbers in `index`, so it ends if another index replaces `index`.
        """
        self.index = index
        self.horizon = horizon
        self._commit = commit
        self._ids = {name: numbers.view() for name, numbers in index.ids.items()}
        self._ends = index.triple_ends.view()
        self._extracted = index.extracted.copy()
        self._protected: dict[str, set[int]] = {name: set() for name in self._ids}
        self._protected_lock = threading.Lock()

    def protect_change(self, delta: IndexDelta) -> None:
        """Protects the rows that a commit refers to. Must be called by the writer before the change is applied."""
        index = self.index
        passages = {*delta.holders, *delta.extracted}
        _, added, _ = delta.triple_change.edges.get("incidence", NO_ENTRIES)
        triples = {row for rows in (added, *delta.extracted.values()) for row in rows.tolist()}
        known = sorted(row for row in triples if row < len(index.predicates))
        phrases = set(index.triple_ends.view()[known].ravel().tolist())
        phrases.update(end for subject, _, object_ in delta.triples for end in (subject, object_))
        self._protect(passages, triples, phrases)

    def protect_batch(self, batch: Batch) -> None:
        """Protects the texts that `batch` omits because the store knows them, so that it can be committed during the purge."""
        index = self.index
        refs = [ref for document in batch.documents for ref in document.passages]
        ids = {*(ref.passage for ref in refs), *(extraction.passage for extraction in batch.extractions)}
        stated = [triple for ref in refs for triple in ref.triples or ()]
        stated += [triple for extraction in batch.extractions for triple in extraction.triples]
        phrases = {index.phrase_rows.get(end, NO_ROW) for subject, _, object_ in stated for end in (subject, object_)}
        triples = {row for triple in stated if (row := index.triple_row(triple)) is not None}
        self._protect({index.passage_rows.get(id, NO_ROW) for id in ids}, triples, phrases)

    def _protect(self, passages: set[int], triples: set[int], phrases: set[int]) -> None:
        """The arguments are rows of the index and may be newer than the purge."""
        found = [self._extracted[row] for row in passages if 0 <= row < len(self._extracted)]
        # If a passage is used again, its extraction is kept together with all triples of the extraction.
        read = {row for rows in found if rows is not None for row in rows.tolist()}
        ends = self._ends[sorted(read)].ravel().tolist()
        with self._protected_lock:
            self._protected["passages"] |= passages
            self._protected["triples"] |= triples | read
            self._protected["phrases"] |= phrases.union(ends)

    def without_protected(self, part: PurgeSlice) -> PurgeSlice:
        """Returns `part` without the rows that must be kept now. Must be called by the writer."""
        if part.contents is None:
            return part
        with self._protected_lock:
            return part.without(self._protected[part.contents])

    def slices(self, tables: TableView) -> list[PurgeSlice]:
        """Returns the rows to delete, in slices. Ignores commits that are only in the log: they are newer than the purge.

        Runs concurrently with commits. Takes O(rows of all tables) time.
        """
        documents = self._read(tables, "documents", ("uri", "state", "commit", "passages"))
        removed = pc.equal(documents["state"], State.REMOVED.value)
        old_documents = self._replaced(documents, codes_of(documents["uri"]), removed)
        synonyms = self._read(tables, "synonyms", ("a", "b", "score", "commit"))
        pairs = synonyms["a"].to_numpy().astype(np.int64) << 32 | synonyms["b"].to_numpy()
        old_synonyms = self._replaced(synonyms, pairs, pc.equal(synonyms["score"], 0.0))
        in_effect = np.setdiff1d(np.arange(documents.num_rows), old_documents)
        passages, triples = self._referenced(documents["passages"].take(in_effect))
        extractions = self._read(tables, "extractions", ("passage", "commit", *COSTS))
        owners = self._rows_of_passages(extractions["passage"].to_pylist())
        old_extractions, last = self._replaced_extractions(extractions, owners, passages)
        self._need_triples(tables, triples, passages, extractions, old_extractions, last)
        phrases = np.zeros(len(self._ids["phrases"]), np.bool_)
        phrases[self._ends[triples].ravel()] = True

        slices = [
            *_cut({"documents": _unowned(documents, old_documents)}),
            *_cut({"synonyms": _unowned(synonyms, old_synonyms)}),
            *_cut({"extractions": _unowned(extractions, old_extractions)}),
        ]
        leaving = last[~passages[owners[last]]]
        with_passages = (
            extractions.select(["_rowid", *COSTS]).take(leaving).append_column("owner", pa.array(owners[leaving]))
        )
        slices += _cut(
            {"passages": self._unneeded(tables, "passages", passages), "extractions": with_passages}, "passages"
        )
        slices += _cut({"triples": self._unneeded(tables, "triples", triples)}, "triples")
        slices += _cut({"phrases": self._unneeded(tables, "phrases", phrases)}, "phrases")
        return slices

    def _read(self, tables: TableView, name: str, columns: Sequence[str]) -> Any:
        """Returns the columns and the ids of the rows up to the purge's commit, in commit order."""
        return tables.read_with_ids(name, columns).filter(pc.field("commit") <= self._commit).sort_by("commit")

    def _replaced(self, table: Any, keys: Rows64, ended: Any = None) -> Rows64:
        """Returns the indices of the replaced rows up to the horizon: all rows except the last row of each key.

        The last row of a key is included too if its `ended` is true.
        """
        past = np.searchsorted(table["commit"].to_numpy(), self.horizon, "right")
        last = last_rows(keys[:past])
        stay = last if ended is None else last[~ended.to_numpy()[last]]
        return np.setdiff1d(np.arange(past), stay)

    def _replaced_extractions(
        self, extractions: Any, owners: Rows64, passages: NDArray[np.bool_]
    ) -> tuple[Rows64, Rows64]:
        """Returns two arrays of indices: extractions that no query can read now, and each known passage's last extraction.

        If a passage is not needed, only its last extraction matters: it is deleted with the passage, or kept with it if a
        commit uses the passage again.
        """
        old = set(self._replaced(extractions, codes_of(extractions["passage"])).tolist())
        last: dict[int, int] = {}
        for i, owner in enumerate(owners.tolist()):
            before = last.get(owner)
            if owner == NO_ROW:
                old.add(i)
                continue
            if before is not None and not passages[owner]:
                old.add(before)
            last[owner] = i
        return np.array(sorted(old), np.int64), np.array(sorted(last.values()), np.int64)

    def _rows_of_passages(self, ids: Iterable[str]) -> Rows64:
        """Returns the index's rows of passages; -1 for a passage added after the purge began."""
        known, count = self.index.passage_rows, len(self._extracted)
        rows = np.array([known.get(id, NO_ROW) for id in ids], np.int64)
        rows[rows >= count] = NO_ROW
        return rows

    def _referenced(self, references: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Returns the masks of the passages and of the triples to which these rows of `documents` refer."""
        passages = np.zeros(len(self._ids["passages"]), np.bool_)
        triples = np.zeros(len(self._ids["triples"]), np.bool_)
        for start in range(0, len(references), CONVERTED_ROWS):
            for text in references.slice(start, CONVERTED_ROWS).to_pylist():
                for ref in schema.documents.passage_refs(text):
                    row = self.index.passage_rows.get(ref.passage)
                    if row is not None and row < len(passages):
                        passages[row] = True
                    self._need(triples, ref.triples or ())
        return passages, triples

    def _need_triples(
        self,
        tables: TableView,
        triples: NDArray[np.bool_],
        passages: NDArray[np.bool_],
        extractions: Any,
        old: Rows64,
        last: Rows64,
    ) -> None:
        """Adds the triples of needed passages' extractions to `triples`: of the last extraction, and of earlier ones that a
        query with `at` can read."""
        for row in np.flatnonzero(passages).tolist():
            found = self._extracted[row]
            if found is not None:
                triples[found] = True
        earlier = np.setdiff1d(np.arange(extractions.num_rows), np.union1d(old, last))
        ids = extractions["_rowid"].to_numpy()[earlier]
        for start in range(0, len(ids), PURGE_SLICE_ROWS):
            part = tables.read_by_id("extractions", ("triples",), ids[start : start + PURGE_SLICE_ROWS].tolist())
            for found in part["triples"].to_pylist():
                self._need(triples, found)

    def _need(self, needed: NDArray[np.bool_], triples: Iterable[Sequence[str]]) -> None:
        for subject, predicate, object_ in triples:
            row = self.index.triple_row((subject, predicate, object_))
            if row is not None and row < len(needed):
                needed[row] = True

    def _unneeded(self, tables: TableView, name: str, needed: NDArray[np.bool_]) -> Any:
        """Returns the rows of a table whose contents are not in `needed`, a mask over the index's rows."""
        if needed.all():
            return pa.table({"_rowid": pa.array([], pa.uint64()), "owner": pa.array([], pa.int64())})
        ids = self._ids[name]
        table = tables.read_with_ids(name, ("row",))
        numbers = table["row"].to_numpy()
        owners = np.searchsorted(ids, numbers).astype(np.int64)
        leaving = owners < len(ids)  # later rows were added after the purge began
        leaving[leaving] = ~needed[owners[leaving]]
        return pa.table({"_rowid": table["_rowid"].filter(pa.array(leaving)), "owner": owners[leaving]})


def _unowned(table: Any, indices: Rows64) -> Any:
    columns = [name for name in ("_rowid", *COSTS) if name in table.column_names]
    rows = table.select(columns).take(indices)
    return rows.append_column("owner", pa.array(np.full(len(indices), NO_ROW)))


def _cut(tables: Mapping[str, Any], contents: str | None = None) -> Iterator[PurgeSlice]:
    """Yields slices of at most `PURGE_SLICE_ROWS` rows of the first table, with the other tables' rows of the same owners."""
    (name, rows), *others = tables.items()
    for start in range(0, rows.num_rows, PURGE_SLICE_ROWS):
        part = rows.slice(start, PURGE_SLICE_ROWS)
        owners = part["owner"].to_numpy()
        belonging = {other: more.filter(pa.array(np.isin(more["owner"].to_numpy(), owners))) for other, more in others}
        yield PurgeSlice(contents, {name: part, **belonging})
