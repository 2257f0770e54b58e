"""Reads of the store that are answered from memory and do not wait for commits.

Exceptions: `extraction_costs`, `extraction_times` and `removed_documents` read a table, and `document_snapshot` waits while a
commit is applied (milliseconds).

The live index may change or be replaced (`store.live_memory`) during a call. Each method therefore reads `_index` once, and
copies or reads each container of the index in one step.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from store.change.pending_inputs import MissingVectors, missing_vectors, unextracted
from store.index.effective_triples import needs_extraction
from store.index.live_index import LiveIndex
from store.index.stored_contents import StoredContents
from store.lance.checksums import Checksums
from store.lance.schema import documents
from store.lance.tables import Condition, Tables
from store.live_memory import LiveMemory
from store.log.commits import Commits
from store.log.extraction_costs import COSTS, TIMES, add_costs, costs_of, times_of
from store.maintenance.erasure import Erasure
from store.reencode.new_vectors import ROWS_AT_ONCE, NewVectors, TextsToEncode, texts_to_encode
from store.snapshot import DocumentSnapshot, Snapshot
from store.types import (
    Batch,
    Document,
    ExtractionCosts,
    ExtractionOutcome,
    ExtractionState,
    GrowthPoint,
    PassageText,
    State,
    Triple,
)

SUPPLIED, UNREAD = "supplied", "none"
"""Labels that replace an extractor's name: `SUPPLIED` if the documents supply the triples, `UNREAD` if no extractor has
processed the passage."""


def _extractor_label(state: ExtractionState | None) -> str:
    return UNREAD if state is None or state.status is ExtractionOutcome.FAILED else state.label


def count_omissions(documents: Iterable[Document]) -> dict[str, int]:
    """Returns the number of items omitted from the documents' passages, by kind."""
    counts: Counter[str] = Counter()
    for document in documents:
        for omission in document.left_out:
            counts[omission.kind] += omission.count
    return dict(sorted(counts.items()))


class StoreReader:
    """Base class of `store.store.Store`. Thread-safe."""

    _live: LiveMemory
    _commits: Commits
    _tables: Tables
    _erasure: Erasure

    @property
    def _index(self) -> LiveIndex:
        return self._live.index

    def snapshot(self) -> Snapshot:
        """Returns the memory as of the last commit."""
        return self._live.snapshot

    def document_snapshot(self) -> DocumentSnapshot:
        """Returns the memory and the documents as of the last commit, for queries that outlast that commit."""
        return self._live.document_snapshot()

    @property
    def horizon(self) -> int:
        """The earliest commit that `snapshot_at` can return."""
        return self._commits.horizon

    def growth(self, limit: int) -> list[GrowthPoint]:
        """Returns the size of the memory at up to `limit` commits that `snapshot_at` accepts, always including the last."""
        times, counts = self._commits.times.copy(), self._commits.counts.copy()
        now = self._live.snapshot
        counts[now.commit] = (now.living_passages, now.living_phrases, now.living_statements)
        known = sorted(seq for seq in counts if self._commits.horizon <= seq <= now.commit and seq in times)
        step = -(-len(known) // limit) or 1
        return [GrowthPoint(seq, times[seq], *counts[seq]) for seq in reversed(known[::-1][::step])]

    @property
    def positions(self) -> Mapping[str, Any]:
        """Returns the position of each source as of the last commit."""
        return self._commits.positions

    def documents(self) -> list[Document]:
        """Returns every document as of the last commit, sorted by URI."""
        return sorted(self._index.documents.copy().values(), key=lambda document: document.uri)

    def document(self, uri: str) -> Document | None:
        return self._index.documents.get(uri)

    def removed_documents(self) -> dict[str, Document]:
        """Returns the documents removed since the horizon, by URI, with their last source and labels.

        The documents of every commit that `snapshot_at` can return are either in the result or among the present documents. The
        source is empty if the version of hippod that removed the document did not record source and labels.
        """
        with self._tables.pruning_paused():
            rows = self._tables.read("documents", None, Condition("state", "=", State.REMOVED.value))
        return {row["uri"]: documents.from_row(row) for row in rows.sort_by("commit").to_pylist()}

    def states(self) -> dict[State, int]:
        """Returns the number of documents in each state."""
        return dict(Counter(document.state for document in self._index.documents.copy().values()))

    def skipped(self) -> list[Document]:
        """Returns the skipped documents."""
        return [each for each in self._index.documents.copy().values() if each.state is State.SKIPPED]

    def omissions(self) -> dict[str, int]:
        """Returns the number of items omitted from the passages of all documents, by kind."""
        return count_omissions(self._index.documents.copy().values())

    def documents_with_passage(self, passage: str) -> list[str]:
        """Returns the URIs of the documents that contain a passage, sorted."""
        index = self._index
        row = index.passage_rows.get(passage)
        return sorted(index.holders[row]) if row is not None else []

    def documents_to_extract(self, passage: str) -> list[str]:
        """Returns the sorted URIs of the documents that contain a passage and did not supply its triples.

        The local extractor processes the passage for these documents.
        """
        index = self._index
        row = index.passage_rows.get(passage)
        holders = index.holders[row] if row is not None else {}
        return sorted(uri for uri, triples in holders.items() if triples is None)

    def extraction_state(self, passage: str) -> ExtractionState | None:
        """Returns the state of a passage's extraction; None if there is no extraction."""
        index = self._index
        row = index.passage_rows.get(passage)
        return index.extraction_states.get(row) if row is not None else None

    def extraction_states(self) -> dict[str, ExtractionState]:
        """Returns the state of every extraction, by passage id, including passages that are no longer living."""
        index = self._index
        return {index.passages[row].id: state for row, state in index.extraction_states.copy().items()}

    def stored_contents(self) -> StoredContents:
        """Returns texts and extractions, living or not, as of the last commit. The caller must have paused commits."""
        return StoredContents(self._index)

    def extracted_triples(self, passage: str) -> tuple[Triple, ...]:
        """Returns the triples extracted from a passage; empty if there is no extraction."""
        index = self._index
        row = index.passage_rows.get(passage)
        rows = index.extracted[row] if row is not None else None
        return tuple(index.triple(int(triple)) for triple in rows) if rows is not None else ()

    def passages_by_extraction(self, wanted: Callable[[ExtractionState | None], bool]) -> list[str]:
        """Returns the ids of the passages that need the local extractor and for which `wanted(state)` is true. `state` is None
        for a passage that was never extracted."""
        index = self._index
        rows = index.holders.copy().needing_extraction().tolist()
        return [index.passages.ids[row] for row in rows if wanted(index.extraction_states.get(row))]

    def passages_by_extractor(self) -> dict[str, int]:
        """Returns the number of living passages by the label of their extractor, or by `SUPPLIED` or `UNREAD`."""
        index = self._index
        holders, states = index.holders.copy(), index.extraction_states.copy()
        needing = holders.needing_extraction()
        counts = Counter(_extractor_label(states.get(row)) for row in needing.tolist())
        supplied = int((holders.sizes() > 0).sum()) - len(needing)
        return dict(sorted(counts.items())) | ({SUPPLIED: supplied} if supplied > 0 else {})

    def extractor_label(self, passage: str) -> str | None:
        """Returns the label under which `passages_by_extractor` counts a passage; None if the passage is not living."""
        index = self._index
        row = index.passage_rows.get(passage)
        if row is None or not (holders := index.holders[row]):
            return None
        return _extractor_label(index.extraction_states.get(row)) if needs_extraction(holders) else SUPPLIED

    def extraction_times(self) -> dict[str, tuple[int, float]]:
        """Returns, by extractor, the number of stored extractions and the sum of their durations in ms."""
        with self._tables.pruning_paused():
            table = self._tables.read("extractions", TIMES)
        return times_of(table)

    def passage(self, id: str) -> PassageText | None:
        """Returns a passage's text, even if the passage is not living."""
        index = self._index
        row = index.passage_rows.get(id)
        return index.passages[row] if row is not None else None

    def unflushed_commits(self) -> int:
        """Returns the number of commits that are only in the log. The caller must have paused commits."""
        return len(self._tables.pending)

    def table_versions(self) -> dict[str, int]:
        """Returns the version of every table. The caller must have paused commits."""
        return dict(self._tables.versions)

    @property
    def checksums(self) -> Checksums:
        """Returns the checksums of the tables' files."""
        return self._tables.checksums

    def extraction_costs(self) -> ExtractionCosts:
        """Returns the costs of all extractions since the store was created, as of the last commit."""
        with self._tables.pruning_paused():
            last, tables = self._commits.now()
            table = tables.read("extractions", COSTS)
        # Extractions without a row (`Commit.rowless_costs`) are counted in the commit.
        return add_costs(last.rowless_costs, costs_of(table))

    def unextracted(self, batch: Batch) -> list[PassageText]:
        """Returns the passages that an extractor must process before `batch` is complete."""
        self._protect(batch)
        return unextracted(self._index, batch)

    def texts_to_encode(self, kind: str, first: int, vectors: NewVectors) -> TextsToEncode | None:
        """Returns the texts without a vector in `vectors` among up to `ROWS_AT_ONCE` rows of a table, beginning with row
        `first`; includes texts that are not living. None if the table has no row `first`."""
        index = self._index
        after = min(first + ROWS_AT_ONCE, index.next_id[kind])
        return texts_to_encode(index, kind, first, after, vectors) if first < after else None

    def missing(self, batch: Batch) -> MissingVectors:
        """Returns the texts that must be encoded before `batch`, including its extractions, can be committed."""
        self._protect(batch)
        return missing_vectors(self._index, batch)

    def _protect(self, batch: Batch) -> None:
        """Prevents a running purge from deleting texts that `batch` uses. Call it before `batch` is compared with the index."""
        if (purge := self._erasure.running) is not None:
            purge.protect_batch(batch)
