"""The store's interface: opens a store, commits, takes snapshots, reads earlier commits, runs concurrent maintenance."""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Self

import structlog

from store.as_of import PastCommits
from store.backup_layout import RESTORING
from store.change.load import load_index
from store.change.plan import plan
from store.change.synonym_change import settle_synonyms
from store.change.write_rows import TableRows, table_rows
from store.checkpoint.files import CheckpointUnusable, discard
from store.checkpoint.restore_index import recover_index
from store.checkpoint.writer import Checkpointing
from store.errors import RESTORE, StoreDamaged, StoreError, StoreRefused, describe_error, refusal
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.lance.checksums import Checksums
from store.lance.layout import table_folder
from store.lance.schema import TABLES
from store.live_memory import LiveMemory
from store.log.commit_history import REENCODE, SETTLE, Commit, rule_facts
from store.log.commits import Commits
from store.log.mark import NAME as MARK
from store.log.store_lock import StoreLock
from store.log.write_ahead_log import FOLDER as LOG
from store.log.write_lock import WriteLock
from store.maintenance.compaction import Compactor
from store.maintenance.erasure import Erasure
from store.maintenance.merge_deltas import DeltaMerger
from store.maintenance.synonym_recall import RecallMeasurement, measure_recall
from store.reader import StoreReader
from store.reencode.switch import NewEncoder, switched_index
from store.scope.scopes import Scopes
from store.snapshot import DocumentSnapshot, Snapshot
from store.types import Batch, Calibration, Document, EncoderIdentity, Pause, SynonymRule, no_pause
from store.upgrade_backup import make_upgrade_backup

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a commit: its number and time (Unix seconds), the number of passages that became living (`born`) or dead
    (`died`), and the replaced or removed documents by URI."""

    seq: int
    time: float
    born: int
    died: int
    replaced: Mapping[str, Document] = field(default_factory=dict)


class Store(StoreReader):
    """One store, open in one process. Only one thread at a time may call `commit`; all other methods are thread-safe."""

    def __init__(
        self,
        folder: Path,
        encoder: EncoderIdentity,
        rule: SynonymRule | None = None,
        lock: StoreLock | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        """Opens `folder` and creates it if necessary. Raises StoreLocked, EncoderMismatch, NewerFormat or StoreDamaged.

        If the synonym edges were made by another rule than `rule`, they are recomputed before this returns. `lock`: the
        folder's lock, if already taken (for example before loading a model). `calibration`: stored if the store is new.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        rule = rule or SynonymRule()
        self._lock = lock or StoreLock(folder)
        try:
            with _explained_errors(folder):
                self._open(encoder, rule, calibration)
        except BaseException:
            self._lock.release()  # last, because explaining an error reads the store
            raise

    def _open(self, encoder: EncoderIdentity, rule: SynonymRule, calibration: Calibration | None) -> None:
        folder = self.folder
        if (folder / RESTORING).exists():
            raise StoreDamaged(f"a restore of the store {folder} was interrupted; run `hippod --restore` again")
        check, before_migration = self._lock.check_written, partial(make_upgrade_backup, folder)
        self._write_lock = WriteLock(folder, self._lock.check)
        self._commits = Commits(folder, self._write_lock, encoder, rule, calibration, check, before_migration)
        self._tables = self._commits.tables
        for place in (folder / LOG, *(table_folder(folder, name) for name in TABLES)):
            self._lock.hold(place)
        self.repaired_tables: Sequence[str] = self._commits.repaired
        """Tables from which opening removed an unfinished change, and files to which it moved an unfinished commit."""
        self.found_format = self._commits.found_format
        """The store's format before opening migrated it to `store.lance.schema.FORMAT`."""
        index, self.opened_from, opened = self._load(encoder.dim, rule)
        self._live = LiveMemory(index, self._commits)
        self.synonym_recall: RecallMeasurement | None = None
        """The last result of `measure_synonym_recall`."""
        self._compactor = Compactor(self._commits)
        self._delta_merger = DeltaMerger(self._live)
        self._past = PastCommits(self._live)
        self._checkpointing = Checkpointing(folder, opened, self._live, self._delta_merger.lock)
        self._erasure = Erasure(self._live, self._delta_merger, self._compactor, self._checkpointing)
        by_other_rule = self._commits.synonym_rule < SynonymRule.VERSION or self._commits.edges_rule != rule
        if by_other_rule or self._commits.synonyms_stale:
            self._settle_synonyms()

    @property
    def scopes(self) -> Scopes:
        """The scopes in use."""
        return self._live.scopes

    @property
    def rule(self) -> SynonymRule:
        """The rule of the synonym edges."""
        return self._index.rule

    def _load(self, dim: int, rule: SynonymRule) -> tuple[LiveIndex, str, int | None]:
        """Returns the index, its origin (for the log), and the commit of the checkpoint that was used, or None."""
        try:
            index, commit = recover_index(self._commits, dim, rule)
        except CheckpointUnusable as reason:
            index = load_index(self._tables, dim, rule)
            # Later starts must not use the checkpoint either, because row numbers of purged rows are reused from now on.
            discard(self.folder)
            return index, f"rebuilt from the tables; no checkpoint was used: {reason}", None
        return index, f"checkpoint of commit {commit}, and the commits after it", commit

    def _settle_synonyms(self) -> None:
        """Recomputes all synonym edges in a separate commit. The edges are recomputed if they were made with the rules or
        triples of an earlier release, or with other `[graph]` settings."""
        logger.info(
            "synonyms_settling",
            phrases=self._index.living.phrases,
            synonym_threshold=self.rule.threshold,
            synonym_variants=self.rule.variants,
        )
        delta = settle_synonyms(self._index)
        with self._write_lock.hold("commit"):
            commit = self._commits.append(SETTLE, self._rows(delta), {}, rule_facts(self.rule))
            self._lock.check_written()
            self._live.apply(delta, commit)
        logger.info("synonyms_settled", edges=len(delta.synonyms.a))

    def check_folder(self) -> None:
        """Raises StoreFolderLost if one of the store's folders is no longer at the path where it was opened.

        Code that writes into the store's folder outside commits must call this first. Thread-safe.
        """
        self._lock.check()

    @property
    def longest_lock_s(self) -> dict[str, float]:
        """For each job, the longest continuous time in seconds for which it delayed commits since the store was opened."""
        return self._write_lock.longest_s

    def commit(self, batch: Batch) -> CommitResult:
        """Adds `batch` to the memory; the change is durable and visible on return.

        After an error, nothing has changed. Only after StoreFolderLost or StoreStopped is it unknown whether the commit is
        durable: the next opening shows that, and nothing can be written until then.
        """
        with self._write_lock.hold("commit"):
            delta = plan(self._index, batch, time.time())
            if (purge := self._erasure.running) is not None:
                purge.protect_change(delta)
            living = self._index.living
            before = (living.passages, living.phrases, living.statements)
            costs = self._commits.with_rowless_costs(batch.supplied_costs)
            touched = {document.uri for document in delta.documents} | set(delta.removed)
            replaced = {uri: old for uri in touched if (old := self._index.documents.get(uri)) is not None}
            known = len(self._index.passages)
            lived = {row: bool(row < known and self._index.holders[row]) for row in delta.holders}
            commit = self._commits.append("change", self._rows(delta), batch.positions, {"before": before}, costs)
            self._lock.check_written()
            self._live.apply(delta, commit)
            born = sum(1 for row, holders in delta.holders.items() if holders and not lived[row])
            died = sum(1 for row, holders in delta.holders.items() if not holders and lived[row])
            self._delta_merger.fold_when_due()
            self._compactor.flush_when_due()
            return CommitResult(commit.seq, commit.time, born, died, replaced)

    def _rows(self, delta: IndexDelta) -> TableRows:
        return table_rows(self._index, delta, self._commits.last.seq + 1)

    def fold(self) -> None:
        """Merges the changes of every matrix into its base, even if they are few."""
        self._delta_merger.fold(lambda index: index.matrices.values())

    def write_checkpoint(self, timed_out: Callable[[], bool] = lambda: False) -> bool:
        """Writes a checkpoint for a fast start (`Checkpointing.write`). Runs concurrently with commits and queries."""
        return self._checkpointing.write(timed_out)

    def check_checkpoint(self) -> bool:
        """Verifies the files that opening mapped into memory but did not read. If they are damaged, reloads the index from the
        tables and returns False.

        Takes O(vectors) time; needed once after a start. Runs concurrently with commits and queries.
        """
        if self._checkpointing.check():
            return True
        self.rebuild_index(force=True)
        return False

    def compact(self, min_fragments: int = 2) -> None:
        """Writes the log into the tables, rewrites tables with at least `min_fragments` fragments, and deletes old versions.

        Runs concurrently with commits and queries. `snapshot_at` needs no old versions, because rows record their commits.
        """
        self._compactor.compact(min_fragments)

    def compact_when_due(self) -> None:
        """Like `compact`, but rewrites only tables that have many fragments and enough new rows since their last rewrite. The
        cost thus depends on the changes, not on the size of the store."""
        self._compactor.compact_when_due()

    @property
    def flush_trouble(self) -> str | None:
        """Why the log cannot be written into the tables, with the size of the log; None if the last flush succeeded."""
        if (error := self._compactor.flush_error) is None:
            return None
        size = f"{self._commits.pending_bytes / 1e6:,.1f} MB, {len(self._tables.pending):,} commits"
        return f"the log ({size}) cannot be written into the tables: {describe_error(error)}"

    def purge(self, keep: timedelta) -> int:
        """Deletes from the disk the rows that no commit younger than `keep` needs; returns the number of deleted rows.

        Runs concurrently with commits, which wait only while one slice of rows is deleted (`store.maintenance.retention`).
        """
        self.check_folder()
        return self._erasure.purge(keep)

    def rebuild_index(self, force: bool = False) -> bool:
        """Reloads the index if many of its rows were purged, or always with `force`; returns whether it was reloaded.

        Commits continue while the new index is loaded, and wait while the commits made meanwhile are applied to it. The old and
        the new index are in memory during that time.
        """
        rebuilt = self._erasure.rebuild(force)
        if rebuilt:
            self._past.clear()
        return rebuilt

    def switch_encoder(self, new: NewEncoder, announce: Callable[[int], None]) -> int:
        """Replaces all vectors and synonym edges by the vectors and edges of the encoder `new` in one commit; returns the
        commit's number.

        Commits wait during the call. Queries use the old vectors until `announce` has been called with the commit's number.
        After the commit, earlier commits cannot be queried, and the old vectors are deleted. Raises NotEncoded if a text has no
        new vector. After this error, or if the process ends before the commit, nothing has changed.
        """
        with self.maintenance_paused():
            with self._write_lock.hold("reencode"):
                last = self._commits.last.seq
                # Earlier commits cannot be read while their tables are rewritten.
                with self._commits.raised_horizon(last), self._commits.changing() as writer:
                    index = switched_index(self._tables, writer, self._index, new, last + 1)
                    self._checkpointing.discard()
                    self._commits.add_commit(writer, REENCODE, new.facts(last + 1), positions=new.positions)
                commit = self._commits.last
                with self._write_lock.must_succeed(f"commit {commit.seq}, with the new encoder, is not in memory"):
                    self._commits.use_dim(new.vectors.target.dim)
                    self._commits.forget_before(commit.seq)
                    announce(commit.seq)
                    self._live.replace(index, commit.seq, commit.time)
            self._compactor.reclaim()
        self._past.clear()
        return commit.seq

    def measure_synonym_recall(self, sample: int = 500) -> RecallMeasurement | None:
        """Returns the share of true synonym pairs that are edges, on a sample of phrases; None if all were compared exactly."""
        if self._index.uses_bands:
            self.synonym_recall = measure_recall(self.snapshot(), self.rule, sample)
        return self.synonym_recall

    @contextmanager
    def maintenance_paused(self) -> Iterator[None]:
        """Prevents the rearrangement and deletion of table files during the `with` block; commits and queries continue."""
        with self._erasure.paused():
            yield

    @contextmanager
    def commits_paused(self, *, flush: bool = False) -> Iterator[Commit]:
        """Makes commits wait during the `with` block; yields the last commit.

        With `flush`, first writes all commits from the log into the tables. The caller must have paused maintenance.
        """
        with self._write_lock.hold("backup"):
            if flush:
                with self._commits.changing():
                    pass
            yield self._commits.last

    def snapshot_at(self, moment: float | int) -> Snapshot:
        """Returns the memory as of a commit (int) or a time in Unix seconds (float). Raises StoreError if it is not kept."""
        past = self._past.at(moment)
        return past.snapshot if past is not None else self._live.snapshot

    def document_snapshot_at(self, moment: float | int, pause: Pause = no_pause) -> DocumentSnapshot:
        """Like `snapshot_at`, but with the documents of that commit. `pause` is called every few milliseconds of the work."""
        return self._past.at(moment, pause) or self.document_snapshot()

    @property
    def past_count(self) -> int:
        """Number of earlier commits that are loaded."""
        return self._past.count

    @property
    def past_bytes(self) -> int:
        """Estimated memory of the loaded earlier commits in bytes."""
        return self._past.bytes

    def scoped(
        self,
        key: Hashable,
        wanted: Callable[[Document], bool],
        moment: float | int | None = None,
        pause: Pause = no_pause,
    ) -> DocumentSnapshot:
        """Returns a memory with only the documents that `wanted` accepts, equal to a new memory of these documents; as of
        `moment`, or of the last commit if `moment` is None.

        `key` identifies `wanted`: a scope built for an equal key is reused. `pause` is called every few milliseconds while an
        earlier commit is loaded. Raises StoreError as `snapshot_at` does.
        """
        past = self._past.scoped_at(wanted, moment, pause) if moment is not None else None
        return past or self._live.scopes.snapshot(key, wanted)

    def close(self) -> None:
        """Writes nothing, releases the store, and makes it refuse later writes. If maintenance still runs in another thread,
        the store stays open until the process ends or `close` is called again."""
        self._delta_merger.close()
        self._compactor.close()
        locks = (self._delta_merger.lock, self._compactor.lock)
        held = [lock for lock in locks if lock.acquire(blocking=False)]
        if len(held) == len(locks):
            with self._write_lock.hold("close", writes=False):
                self._write_lock.close()
                self._commits.close()
                self._lock.release()
        for lock in held:
            lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _explained_errors(folder: Path) -> Iterator[None]:
    """Converts errors in the block, which opens the store, to a StoreError that says what to do."""
    try:
        yield
    except StoreError:
        raise
    except LookupError as error:
        # A file has wrong content, or hippod has an error.
        logger.exception("store_not_opened", store=folder)
        Checksums(folder, (folder / LOG / MARK).exists()).check_all()
        raise StoreError(
            f"the store {folder} cannot be opened because of an error in hippod ({describe_error(error)}): "
            "its tables are as they were written; keep it, and report the error with the log"
        ) from error
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        # Lance raises these errors for missing or truncated files, or because of their wrong content.
        if (what_to_do := refusal(error)) is not None:
            problem = f"the store {folder} cannot be opened ({describe_error(error)})"
            raise StoreRefused(f"{problem}; {what_to_do}") from error
        raise StoreDamaged(f"the store {folder} cannot be read ({describe_error(error)}); {RESTORE}") from error
