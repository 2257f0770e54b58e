"""The store's door: open, commit, take a snapshot, look back, and the maintenance that runs beside commits."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self

import structlog

from store.as_of import PastCommits
from store.change.plan import plan_statements
from store.change.settle_synonyms import settle_synonyms
from store.change.synonym_change import plan_synonyms
from store.change.write_rows import statement_rows, synonym_rows, write_rows
from store.checkpoint.files import CheckpointUnusable, discard
from store.checkpoint.restore_index import recover_index
from store.document_snapshot import DocumentSnapshot
from store.errors import StoreDamaged, StoreFolderLost, StoreRefused, refusal
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.index.load import Rest, load_index, no_rest
from store.lance.layout import table_folder
from store.lance.schema import TABLES
from store.lance.tables import Tables
from store.log.commits import SETTLE, Commit, CommitLog
from store.log.extraction_costs import add_costs
from store.log.store_lock import StoreLock
from store.log.write_lock import WriteLock
from store.maintenance.checkpointing import Checkpointing
from store.maintenance.compaction import PRUNE_MIN_AGE, Compactor
from store.maintenance.merge_deltas import Folding
from store.maintenance.rebuild import catch_up, load_fresh, needs_rebuild
from store.maintenance.retention import Purge, PurgeSlice
from store.maintenance.synonym_recall import RecallMeasurement, measure_recall
from store.reader import StoreReader
from store.scope.changes import Changes
from store.scope.scopes import Scopes
from store.snapshot import Snapshot
from store.types import Batch, Document, EncoderIdentity, ExtractionCosts, SynonymRule

log = structlog.get_logger(__name__)

TRIM_MIN_ROWS = 1_000
"""Rows of the log from which on they are trimmed though a purge deleted nothing: nobody can look back at their commits then."""


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a commit did: its number and time (Unix seconds), how many passages came to life or were forgotten, and the
    documents that it replaced or removed, by URI."""

    seq: int
    time: float
    born: int
    died: int
    replaced: Mapping[str, Document] = field(default_factory=dict)


class Store(StoreReader):
    """One store, open in one process. `commit` is for one thread at a time; everything else may be called from any."""

    def __init__(
        self, folder: Path, encoder: EncoderIdentity, rule: SynonymRule | None = None, lock: StoreLock | None = None
    ) -> None:
        """Opens `folder`, creating it if need be. Raises StoreLocked, EncoderMismatch, NewerFormat or StoreDamaged.

        `lock` is the folder's lock where the caller took it already (before loading a model, say).
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self.rule = rule or SynonymRule()
        self._lock = lock or StoreLock(folder)
        try:
            if (folder / "restoring").exists():
                raise StoreDamaged(f"a restore of the store {folder} was interrupted; run `hippod --restore` again")
            self._tables = Tables(folder, encoder.dim)
            for name in TABLES:
                self._lock.hold(table_folder(folder, name))
            self._log = CommitLog(self._tables, encoder)
            self._tables.assume_synced()
            self.repaired_tables: Sequence[str] = sorted({*self._tables.torn, *self._log.rolled_back})
            """Tables of which opening took away what no commit had finished."""
            self.found_format = self._log.format
            """The store's format before it was opened, which made it `store.lance.schema.FORMAT`."""
            self._index, self.opened_from, opened = self._load(encoder.dim)
        except (OSError, RuntimeError, ValueError, KeyError, IndexError) as error:
            # What Lance raises for files that are missing or cut, and what reading them wrongly would lead to.
            self._lock.release()
            if (what_to_do := refusal(error)) is not None:
                said = f"the store {folder} cannot be opened ({type(error).__name__}: {_short(error)})"
                raise StoreRefused(f"{said}; {what_to_do}") from error
            raise StoreDamaged(
                f"the store {folder} cannot be read ({type(error).__name__}: {_short(error)}); "
                "restore a backup with `hippod --restore DIR`"
            ) from error
        except BaseException:
            self._lock.release()
            raise
        self._snapshot = Snapshot(self._index, self._log.last.seq, self._log.last.time)
        self.synonym_recall: RecallMeasurement | None = None
        """What `measure_synonym_recall` found last."""
        self._applying = False
        self._apply_lock = threading.Lock()
        """Held while a commit is being applied to the index, and by who copies what a commit changes."""
        self.scopes = Scopes(self.rule, self._apply_lock, lambda: (self._index, self._snapshot))
        self._purge = None
        self._write_lock = WriteLock(self._lock.check)
        self._compactor = Compactor(self._tables, self._log, self._write_lock)
        self._folding = Folding(self._write_lock, lambda: self._index, self._publish_folded)
        self._past = PastCommits(self._tables, self._log, self._write_lock, lambda: self._index)
        self._checkpointing = Checkpointing(
            folder,
            self.rule,
            opened,
            self._write_lock,
            self._folding,
            lambda: (self._index, self._log.last),
            self._publish_folded,
        )
        if self._log.synonym_rule < SynonymRule.VERSION or self._log.synonyms_stale:
            self._settle_synonyms()

    def _load(self, dim: int) -> tuple[LiveIndex, str, int | None]:
        """The index, where it came from (for the log), and the commit of the checkpoint that this was."""
        times, horizon = self._log.times, self._log.horizon
        try:
            index, commit = recover_index(self.folder, self._tables, dim, self.rule, times, horizon)
        except CheckpointUnusable as reason:
            index = load_index(self._tables, dim, self.rule)
            # No later start may use it either: numbers of purged rows are used again from here on.
            discard(self.folder)
            return index, f"rebuilt from the tables; no checkpoint was used: {reason}", None
        return index, f"checkpoint of commit {commit}, and the commits after it", commit

    def _settle_synonyms(self) -> None:
        """Makes all synonym edges anew, in a commit of its own: an earlier release's rules made them, or its triples."""
        log.info("synonyms_settling", phrases=self._index.living_phrases)
        delta = settle_synonyms(self._index, self.rule)
        with self._write_lock.hold("commit"):
            try:
                write_rows(self._tables, self._index, delta, self._log.last.seq + 1)
                commit = self._log.append(SETTLE, {}, {"synonym_rule": SynonymRule.VERSION})
            except BaseException:
                self._undo()
                raise
            self._lock.check_written()
            self._apply(delta, commit)
        log.info("synonyms_settled", edges=len(delta.synonyms.a))

    def check_folder(self) -> None:
        """Raises StoreFolderLost unless the store's folders are where they were opened. Whoever writes into the store's folder
        beside its commits calls this before. For any thread."""
        self._lock.check()

    @property
    def longest_lock_s(self) -> dict[str, float]:
        """By job: the longest time in seconds that it made commits wait at a stretch, since the store was opened."""
        return self._write_lock.longest_s

    def commit(self, batch: Batch) -> CommitResult:
        """Makes `batch` part of the memory: durable and visible when it returns, or not at all."""
        with self._write_lock.hold("commit"):
            delta, numbers = plan_statements(self._index, batch, time.time())
            if self._purge is not None:
                self._purge.protect_change(delta)
            seq = self._log.last.seq + 1
            try:
                # Lance works and waits for the disk in threads of its own.
                with self._tables.appending(statement_rows(self._index, delta, seq)):
                    plan_synonyms(self._index, delta, numbers, self.rule)
                    self._tables.append_to(synonym_rows(self._index, delta, seq))
                before = (self._index.living_passages, self._index.living_phrases, self._index.living_statements)
                commit = self._log.append(
                    "change", batch.positions, {"before": before}, self._with_rowless_costs(batch.supplied_costs)
                )
            except BaseException:
                self._undo()
                raise
            self._lock.check_written()
            touched = {document.uri for document in delta.documents} | set(delta.removed)
            replaced = {uri: old for uri in touched if (old := self._index.documents.get(uri)) is not None}
            known = len(self._index.passages)
            lived = {row: bool(row < known and self._index.holders[row]) for row in delta.holders}
            self._applying = True
            try:
                with self._apply_lock:
                    self._apply(delta, commit)
            finally:
                self._applying = False
            born = sum(1 for row, holders in delta.holders.items() if holders and not lived[row])
            died = sum(1 for row, holders in delta.holders.items() if not holders and lived[row])
            self._folding.fold_when_due()
            self._compactor.merge_when_due()
            return CommitResult(commit.seq, commit.time, born, died, replaced)

    def _with_rowless_costs(self, more: ExtractionCosts) -> ExtractionCosts | None:
        """The log's sum with `more`; None if that adds nothing."""
        return add_costs(self._log.last.rowless_costs, more) if more else None

    def _apply(self, delta: IndexDelta, commit: Commit) -> None:
        """Brings the index up to what the tables hold by now."""
        try:
            self._index.apply(delta)
        except Exception:
            # The commit stands. An index with a part of it would answer wrongly, or not at all, from now on.
            log.exception("index_reloaded", commit=commit.seq)
            spoiled, self._index = self._index, load_index(self._tables, self._index.dim, self.rule)
            self._index.keep_numbering_of(spoiled)
            self.scopes.clear()
        self._snapshot = Snapshot(self._index, commit.seq, commit.time)
        touched = {document.uri for document in delta.documents} | set(delta.removed)
        self.scopes.note(commit.seq, Changes(touched, {extraction.passage for extraction in delta.extractions}))

    def _undo(self) -> None:
        """Brings back the tables that a failed commit had already changed (a full disk, say). If the store's folder is lost,
        the next opening does that: what is at its path may be another store."""
        with suppress(StoreFolderLost):
            self._lock.check_written()
            self._roll_back()

    def _roll_back(self) -> None:
        for name, version in self._log.last.versions.items():
            if self._tables.version(name) != version:
                self._tables.roll_back(name, version, self._log.last.seq, self._index.next_id.get(name))

    def fold(self) -> None:
        """Folds every matrix's log into its base, however short it is."""
        self._folding.fold(list(self._index.matrices))

    def _publish_folded(self, index: LiveIndex) -> None:
        if self._index is index:
            self._snapshot = Snapshot(index, self._snapshot.commit, self._snapshot.time)

    def write_checkpoint(self, timed_out: Callable[[], bool] = lambda: False) -> bool:
        """Folds, and writes the memory down for a fast start; False where the last commit has a checkpoint. Raises OSError, and
        CheckpointTimeout once `timed_out()` is true. Commits and queries go on meanwhile."""
        return self._checkpointing.write(timed_out)

    def check_checkpoint(self) -> bool:
        """Reads what opening mapped from the checkpoint and did not read; False where it is damaged. Then the index is loaded
        anew from the tables. O(vectors), once after a start; commits and queries go on meanwhile."""
        if self._checkpointing.check():
            return True
        self.rebuild_index(force=True)
        return False

    def compact(self, least: int = 2, min_age: timedelta = PRUNE_MIN_AGE) -> None:
        """Merges fragments, rewrites tables that have `least` or more even then, and drops versions older than `min_age`.

        Commits and queries go on meanwhile. No version is needed for looking back (`snapshot_at`): rows name their commits.
        """
        self._compactor.compact(least, min_age)

    def purge(self, keep: timedelta) -> int:
        """Takes off the disk what no commit younger than `keep` needs; returns how many rows that were.

        What goes is worked out beside commits, which wait for one slice of rows at a time (`store.maintenance.retention`).
        """
        horizon = self._log.commit_at(time.time() - keep.total_seconds())
        if horizon is None:
            return 0
        with self._compactor.paused():
            count = self._sweep(horizon)
            self._compactor.reclaim(count > 0)
            self._compactor.trim_log(horizon, 1 if count else TRIM_MIN_ROWS)
        if count:
            self._checkpointing.renew()
        return count

    def _sweep(self, horizon: int) -> int:
        with self._write_lock.hold("purge"):
            purge = self._purge = Purge(self._index, horizon, self._log.last.seq)
        try:
            return sum(self._delete(purge, part) for part in purge.mark(self._tables))
        finally:
            self._purge = None

    def _delete(self, purge: Purge, part: PurgeSlice) -> int:
        """Takes what may still go of a slice out of tables and index, as one commit; returns how many rows that were."""
        with self._write_lock.hold("purge"):
            part = purge.without_protected(part)
            if self._index is not purge.index or not len(part):
                return 0
            self._log.horizon = max(self._log.horizon, purge.horizon)  # first: who looks back beside this asks for it
            try:
                for name, ids in part.ids().items():
                    self._tables.delete(name, ids)
                self._log.append("purge", {}, {"horizon": purge.horizon}, self._with_rowless_costs(part.costs()))
            except BaseException:
                self._undo()
                raise
            if part.contents is not None:
                with self._apply_lock:
                    self._index.forget(part.contents, part.index_rows())
            return len(part)

    def rebuild_index(self, force: bool = False) -> bool:
        """Loads the index anew where much of it was purged, or in any case with `force`; returns whether it did.

        Commits go on while it is loaded, and wait while those of that time are applied to it. For that long both are in
        memory.
        """
        if not force and not needs_rebuild(self._index):
            return False
        with self._folding.lock, self._compactor.paused():
            with self._write_lock.hold("rebuild"):
                commit = self._log.last
                tables = Tables(self.folder, self._index.dim, repair=False)
            index = load_fresh(tables, self._index.dim, self.rule)
            with self._write_lock.hold("rebuild"):
                catch_up(index, self._index, self._tables, commit.seq)
                self._applying = True
                try:
                    with self._apply_lock:
                        self._index = index
                        self._snapshot = Snapshot(index, self._snapshot.commit, self._snapshot.time)
                        self.scopes.clear()
                finally:
                    self._applying = False
        self._past.clear()
        return True

    def measure_synonym_recall(self, sample: int = 500) -> RecallMeasurement | None:
        """The share of true synonym pairs that are edges, by a sample of phrases; None where all were compared exactly."""
        if self._index.uses_bands:
            self.synonym_recall = measure_recall(self.snapshot(), self.rule, sample)
        return self.synonym_recall

    def wait_until_paged_in(self) -> None:
        """Until what additions read is in memory. That begins with the first after opening; nothing needs to wait for it."""
        self._index.sketches.wait_until_paged_in()
        self._index.phrase_vectors.wait_until_paged_in()

    @contextmanager
    def maintenance_paused(self) -> Iterator[None]:
        """While this lasts no table's files are rearranged or dropped; commits and queries go on."""
        with self._folding.lock, self._compactor.paused():
            yield

    @contextmanager
    def commits_paused(self) -> Iterator[Commit]:
        """Commits wait for as long as this lasts; gives the last one."""
        with self._write_lock.hold("backup"):
            yield self._log.last

    def snapshot_at(self, moment: float | int) -> Snapshot:
        """The memory as of a commit (an int) or of a time in Unix seconds (a float). Raises StoreError if that is not kept."""
        past = self._past.at(moment)
        return past.snapshot if past is not None else self._snapshot

    def document_snapshot_at(self, moment: float | int, rest: Rest = no_rest) -> DocumentSnapshot:
        """As `snapshot_at`, with the names of the documents of then. `rest` is called every few milliseconds of the work."""
        return self._past.at(moment, rest) or self.document_snapshot()

    @property
    def past_count(self) -> int:
        """Earlier commits that are kept in memory."""
        return self._past.count

    @property
    def past_bytes(self) -> int:
        """About how much memory they take."""
        return self._past.bytes

    def scoped(
        self,
        key: Hashable,
        wanted: Callable[[Document], bool],
        moment: float | int | None = None,
        rest: Rest = no_rest,
    ) -> DocumentSnapshot:
        """What a fresh memory of the documents that `wanted` accepts would be, as of the last commit or of `moment`.

        `key` stands for `wanted`: the same one is answered from what was made for it before. `rest` is called every few
        milliseconds of the work on an earlier commit. Raises StoreError as `snapshot_at` does.
        """
        past = self._past.scoped_at(wanted, moment, rest) if moment is not None else None
        return past or self.scopes.memory(key, wanted)

    def close(self) -> None:
        """Releases the store; nothing is written. Maintenance that a thread is at keeps the lock until the process ends."""
        self._folding.close()
        self._compactor.close()
        if self._folding.lock.acquire(blocking=False):
            if self._compactor.is_idle():
                with self._write_lock.hold("close", writes=False):
                    self._lock.release()
            self._folding.lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
