"""The reading half of the store: what it has, answered from memory and without waiting for a commit.

Exceptions: `extraction_costs` reads a table, and `document_snapshot` waits while a commit is applied (milliseconds).

The live index changes meanwhile, and another may take its place (`store.maintenance.rebuild`). So a method reads `_index` once,
and each of its containers in one step.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from store.change.pending_inputs import MissingVectors, missing_vectors, unextracted
from store.document_snapshot import DocumentSnapshot
from store.index.live_index import LiveIndex
from store.index.stored_contents import StoredContents
from store.lance.checksums import Checksums
from store.lance.schema import documents
from store.lance.tables import Tables
from store.log.commits import CommitLog
from store.log.extraction_costs import COSTS, TIMES, add_costs, costs_of, mean_ms
from store.maintenance.retention import Purge
from store.snapshot import Snapshot
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
"""Stand for an extractor's name where the documents supply the triples, and where no extractor has read the passage."""


def count_omissions(documents: Iterable[Document]) -> dict[str, int]:
    """How much content is omitted from the documents' passages, by kind."""
    counts: Counter[str] = Counter()
    for document in documents:
        for omission in document.left_out:
            counts[omission.kind] += omission.count
    return dict(sorted(counts.items()))


class StoreReader:
    """What `store.store.Store` inherits; may be called from any thread."""

    _index: LiveIndex
    _snapshot: Snapshot
    _applying: bool
    """While a commit is being applied to the index."""
    _log: CommitLog
    _tables: Tables
    _purge: Purge | None
    """The purge under way."""

    def snapshot(self) -> Snapshot:
        """The memory as of the last commit."""
        return self._snapshot

    def document_snapshot(self) -> DocumentSnapshot:
        """The memory as of the last commit with its documents, for a question that outlives that commit."""
        while True:
            snapshot = self._snapshot
            if not self._applying:
                index = self._index
                found = DocumentSnapshot(snapshot, index.documents.copy(), index.holders.copy())
                # A commit applied in between ends with another snapshot; one being applied sets `_applying`.
                if not self._applying and self._snapshot is snapshot:
                    return found
            time.sleep(0.001)

    @property
    def horizon(self) -> int:
        """The earliest commit that `snapshot_at` can show."""
        return self._log.horizon

    def growth(self, limit: int) -> list[GrowthPoint]:
        """How large the memory was, at no more than `limit` of the commits that `snapshot_at` can show, the last among them."""
        times, counts = self._log.times.copy(), self._log.counts.copy()
        now = self._snapshot
        counts[now.commit] = (now.living_passages, now.living_phrases, now.living_statements)
        known = sorted(seq for seq in counts if self._log.horizon <= seq <= now.commit and seq in times)
        step = -(-len(known) // limit) or 1
        return [GrowthPoint(seq, times[seq], *counts[seq]) for seq in reversed(known[::-1][::step])]

    @property
    def positions(self) -> Mapping[str, Any]:
        """Where each source stands as of the last commit."""
        return self._log.positions

    def documents(self) -> list[Document]:
        """Every document as of the last commit, by URI."""
        return sorted(self._index.documents.copy().values(), key=lambda document: document.uri)

    def document(self, uri: str) -> Document | None:
        return self._index.documents.get(uri)

    def removed_documents(self) -> dict[str, Document]:
        """By URI: each document that was removed since the horizon, with the source and the labels that it had last.

        The documents of every commit that can be looked back at are among these or among the present ones. A removal by a
        hippod that did not write down source and labels gives an empty source.
        """
        with self._tables.pruning_paused():
            rows = self._tables.read_where("documents", None, f"state = '{State.REMOVED.value}'")
        return {row["uri"]: documents.from_row(row) for row in rows.sort_by("commit").to_pylist()}

    def states(self) -> dict[State, int]:
        """How many documents there are in each state."""
        return dict(Counter(document.state for document in self._index.documents.copy().values()))

    def skipped(self) -> list[Document]:
        """The documents that are skipped."""
        return [each for each in self._index.documents.copy().values() if each.state is State.SKIPPED]

    def omissions(self) -> dict[str, int]:
        """How much content the documents' passages do not contain, by kind."""
        return count_omissions(self._index.documents.copy().values())

    def documents_with_passage(self, passage: str) -> list[str]:
        """URIs of the documents that hold a passage, sorted."""
        index = self._index
        row = index.passage_rows.get(passage)
        return sorted(index.holders[row]) if row is not None else []

    def documents_to_extract(self, passage: str) -> list[str]:
        """URIs of the documents that hold a passage and brought no extraction of it, sorted: the local extractor reads it."""
        index = self._index
        row = index.passage_rows.get(passage)
        holders = index.holders[row] if row is not None else {}
        return sorted(uri for uri, triples in holders.items() if triples is None)

    def extraction_state(self, passage: str) -> ExtractionState | None:
        """The state of the extraction from a passage, None where there is none."""
        index = self._index
        row = index.passage_rows.get(passage)
        return index.extraction_states.get(row) if row is not None else None

    def extraction_states(self) -> dict[str, ExtractionState]:
        """The state of every extraction, by passage id, of living passages and others."""
        index = self._index
        return {index.passages[row].id: state for row, state in index.extraction_states.copy().items()}

    def stored_contents(self) -> StoredContents:
        """Texts and extractions, living or not, as of the last commit. The caller has paused commits."""
        return StoredContents(self._index)

    def extracted_triples(self, passage: str) -> tuple[Triple, ...]:
        """The triples that an extractor found in a passage; none where it found none or there is no extraction."""
        index = self._index
        row = index.passage_rows.get(passage)
        rows = index.extracted[row] if row is not None else None
        return tuple(index.triple(int(triple)) for triple in rows) if rows is not None else ()

    def passages_by_extraction(self, wanted: Callable[[ExtractionState | None], bool]) -> list[str]:
        """Ids of the passages that the local extractor reads, whose extraction's state (None: no extraction) is `wanted`."""
        index = self._index
        rows = index.holders.needing_extraction().tolist()
        return [index.passages.ids[row] for row in rows if wanted(index.extraction_states.get(row))]

    def passages_by_extractor(self) -> dict[str, int]:
        """Counts the living passages by the label of the extractor that has read them, or by `SUPPLIED` or `UNREAD`."""
        index = self._index
        needing, states = index.holders.needing_extraction(), index.extraction_states.copy()
        found = [states.get(row) for row in needing.tolist()]
        counts = Counter(
            UNREAD if each is None or each.status is ExtractionOutcome.FAILED else each.label for each in found
        )
        supplied = int((index.holders.sizes() > 0).sum()) - len(needing)
        return dict(sorted(counts.items())) | ({SUPPLIED: supplied} if supplied > 0 else {})

    def extraction_ms(self, wanted: Callable[[str], bool]) -> float | None:
        """Returns the mean time in ms that the extractors with a `wanted` name took for a passage; None if unknown."""
        with self._tables.pruning_paused():
            table = self._tables.read("extractions", TIMES, self._log.last.versions["extractions"])
        return mean_ms(table, wanted)

    def passage(self, id: str) -> PassageText | None:
        """A passage's text, living or not."""
        index = self._index
        row = index.passage_rows.get(id)
        return index.passages[row] if row is not None else None

    def table_versions(self) -> dict[str, int]:
        """The version of every table as of the last commit, the log's included. The caller has paused commits."""
        return {**self._log.last.versions, "commits": self._tables.version("commits")}

    @property
    def checksums(self) -> Checksums:
        """Those of the tables' files."""
        assert self._tables.checksums is not None
        return self._tables.checksums

    def extraction_costs(self) -> ExtractionCosts:
        """What extraction has cost over the life of the store, as of the last commit."""
        with self._tables.pruning_paused():
            last = self._log.last
            # As of that commit: while small fragments are merged, the newest version has their rows twice for a moment.
            table = self._tables.read("extractions", COSTS, last.versions["extractions"])
        return add_costs(last.rowless_costs, costs_of(table))

    def unextracted(self, batch: Batch) -> list[PassageText]:
        """The passages that an extractor has to read before `batch` is complete."""
        self._protect(batch)
        return unextracted(self._index, batch)

    def missing(self, batch: Batch) -> MissingVectors:
        """The texts that have to be encoded before `batch`, which has its extractions, can be committed."""
        self._protect(batch)
        return missing_vectors(self._index, batch)

    def _protect(self, batch: Batch) -> None:
        """Keeps a purge under way from what `batch` will find known. Called before the answer is worked out."""
        if (purge := self._purge) is not None:
            purge.protect_batch(batch)
