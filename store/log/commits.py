"""The commits: one record in the log makes a commit durable; a flush moves many commits into the tables.

A commit appends its rows, including its row of the table `commits`, to the log (`store.log.write_ahead_log`). Readers see these
rows as rows of the tables. A flush writes the rows into the tables and replaces the mark (`store.log.mark`). A change that
rewrites or deletes rows (a purge, a migration, a compaction) also flushes, and takes effect when the mark is replaced.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import structlog

from store.errors import RESTORE, EncoderMismatch, NewerFormat, OlderFormat, StoreDamaged, StoreStopped
from store.lance.schema import FORMAT, TABLES, commits, schemas
from store.lance.schema.commits import CommitRow
from store.lance.table_writer import TableWriter
from store.lance.tables import Tables, TableView
from store.lance.versions import drop_newer
from store.log import migrations
from store.log.commit_history import STALE, Commit, CommitHistory, encoder_facts, rule_facts
from store.log.extraction_costs import add_costs
from store.log.mark import Mark, current_mark, mark_of_tables, read_mark, write_mark
from store.log.write_ahead_log import HEAD, Head, WriteAheadLog
from store.log.write_lock import WriteLock
from store.types import Calibration, EncoderIdentity, ExtractionCosts, SynonymRule

logger = structlog.get_logger(__name__)


class Commits(CommitHistory):
    """Opens a store's tables and log, and adds commits. Only one thread at a time may use the log, except for `changing`."""

    def __init__(
        self,
        folder: Path,
        write_lock: WriteLock,
        encoder: EncoderIdentity,
        rule: SynonymRule,
        calibration: Calibration | None,
        check: Callable[[], None],
        before_migration: Callable[[int, int, float], object],
    ) -> None:
        """`rule` and `calibration` are written into a new store. `check` raises StoreFolderLost if the store's path may lead to
        another folder. `before_migration` is called before an older store is migrated, with the store's format and the number
        and time of its last commit. An error stops the migration."""
        self._folder = folder
        self.write_lock = write_lock
        self._check = check
        self._mark = current_mark(folder)
        """The mark on the disk. None until the first opening has ended."""
        mark = self._mark or mark_of_tables(folder)
        self.repaired = [name for name in TABLES if mark is not None and drop_newer(folder, name, mark.versions[name])]
        """See `Store.repaired_tables`."""
        self.tables = Tables(folder, encoder.dim, self._mark is not None)
        self._schemas = schemas(encoder.dim)
        self._head = Head(folder)
        """The file with the number of an acknowledged commit. Later commits may have been acknowledged too."""
        self._files = WriteAheadLog(folder, self._schemas, self._head.acknowledged, write_lock.must_succeed)
        self.repaired += self._files.torn
        self.pending_bytes = 0
        """Bytes of the commits that are only in the log."""
        self._visible = threading.Lock()
        """Must be held while a commit becomes visible, so that the last commit and the tables change together (`now`)."""
        self._unfinished = False
        """Whether a change has failed and has not been undone yet."""
        self._replay(mark.commit if mark is not None else 0)
        super().__init__(commits.from_table(self.tables.read("commits")))
        self.found_format = self.format if self.last.seq else FORMAT
        """The store's format before opening migrated it to `FORMAT`."""
        if self.last.seq:
            self._check_identity(encoder)
            self._check_head()
            if self.format < FORMAT:
                before_migration(self.format, self.last.seq, self.last.time)
                self._migrate()
        else:
            facts = {"format": FORMAT} | encoder_facts(encoder, calibration) | rule_facts(rule)
            with self.changing() as writer:
                self.add_commit(writer, "create", facts)
        if self._mark is None:
            checksums = self.tables.checksums
            checksums.sync(TABLES)
            checksums.flush_all()  # a process that ended may have left files unflushed whose checksums it recorded
            self._mark = Mark(self.last.seq, self.tables.versions)
            write_mark(self._folder, self._mark)

    def _replay(self, flushed: int) -> None:
        """Adds the commits after `flushed` from the log to the tables' rows."""
        last = flushed
        for record in self._files.records:
            if record.commit <= flushed:
                continue  # the log's file should have been deleted after the flush
            if record.commit != last + 1:
                raise StoreDamaged(f"the store {self._folder} lacks commit {last + 1} in its log; {RESTORE}")
            last = record.commit
            self.tables.add_pending(record.rows)
            self.pending_bytes += record.bytes
        self._files.records = []

    def _check_identity(self, encoder: EncoderIdentity) -> None:
        if self.format > FORMAT:
            raise NewerFormat(
                f"the store {self._folder} has format {self.format}, this hippod reads up to {FORMAT}; "
                "upgrade hippod, or set another [store] path"
            )
        if missing := [step for step in range(self.format, FORMAT) if step not in migrations.STEPS]:
            raise OlderFormat(
                f"the store {self._folder} has format {self.format}, and this hippod has no step from format "
                f"{missing[0]} to {missing[0] + 1}; first open it with an older hippod that has this step (see the changelog)"
            )
        if (found := self.encoder) != encoder:
            raise EncoderMismatch(
                f"the vectors of the store {self._folder} are by the encoder {found.name} ({found.dim} dimensions), "
                f"which {encoder.name} ({encoder.dim}) cannot read; start with `hippod --reencode` to encode the content anew"
            )

    def _check_head(self) -> None:
        if self._head.acknowledged > self.last.seq:
            raise StoreDamaged(
                f"the store {self._folder} made commit {self._head.acknowledged} and its log ends with {self.last.seq}; "
                f"{RESTORE}, or, to continue with the older commit, delete the file {self._folder / HEAD}"
            )

    def _migrate(self) -> None:
        """Migrates the store to this version's format, with one commit per step."""
        for step in range(self.found_format, FORMAT):
            with self.changing() as writer:
                done = migrations.STEPS[step](writer) or migrations.Migrated()
                facts: dict[str, Any] = {"format": step + 1}
                if not done.earlier_commits_readable:
                    # This version cannot read earlier commits, which have the old format. The checkpoints of these commits are
                    # not used either.
                    facts["horizon"] = self.last.seq + 1
                if done.triples_changed:
                    facts[STALE] = True
                self.add_commit(writer, "migrate", facts, self.with_rowless_costs(done.deleted_costs))

    def commit_at(self, moment: float) -> int | None:
        """Returns the last commit whose recorded time is at or before `moment` (Unix seconds), or None."""
        times = self.times.copy()  # a commit may be added concurrently
        return next((seq for seq in reversed(times) if times[seq] <= moment), None)

    def commit_before_all_since(self, moment: float) -> int | None:
        """Returns the last commit that precedes all commits possibly made after `moment` (Unix seconds), or None.

        If the clock was set back, this may be an earlier commit than the one of `commit_at`.
        """
        found, last = None, self.last.time
        # A copy, because a commit may be added concurrently.
        for seq, at in self.times.copy().items():
            if at > last:
                continue  # made while the clock was ahead; the clock has been set back since
            if at > moment:
                break
            found = seq
        return found

    @contextmanager
    def raised_horizon(self, horizon: int) -> Iterator[None]:
        """Raises the horizon before the block, because concurrent readers of earlier commits check it. Restores the horizon if
        the block fails. The caller must hold the write lock."""
        before = self.horizon
        self.horizon = max(before, horizon)
        try:
            yield
        except BaseException:
            self.horizon = before
            raise

    def forget_before(self, horizon: int) -> None:
        """Drops the times and counts of commits before `horizon`. The caller must hold the write lock."""
        self.horizon = max(self.horizon, horizon)
        self.times = {seq: at for seq, at in self.times.items() if seq >= self.horizon}
        self.counts = {seq: counts for seq, counts in self.counts.items() if seq >= self.horizon}

    def append(
        self,
        kind: str,
        rows: Mapping[str, Mapping[str, Any]],
        positions: Mapping[str, Any],
        facts: Mapping[str, Any] | None = None,
        rowless_costs: ExtractionCosts | None = None,
    ) -> Commit:
        """Commits `rows`, given as columns by table. On return, the commit survives a power loss. Raises OSError, after which
        nothing has changed, or StoreStopped. The caller must hold the write lock.

        `rowless_costs` must be given if the commit changes these costs or deletes the row that contained them.
        """
        row = self._next(kind, positions, facts, rowless_costs)
        columns = {**rows, "commits": commits.to_columns(row)}
        tables = {name: pa.table(dict(each), schema=self._schemas[name]) for name, each in columns.items()}
        record = self._files.append(row.seq, {name: table for name, table in tables.items() if table.num_rows})
        with self.write_lock.must_succeed(f"commit {row.seq} is on the disk and not in memory"), self._visible:
            self.tables.add_pending(record.rows)
            self.pending_bytes += record.bytes
            self._note(row)
        return self.last

    def with_rowless_costs(self, more: ExtractionCosts) -> ExtractionCosts | None:
        """Returns the last commit's `rowless_costs` plus `more`; None if `more` is empty."""
        return add_costs(self.last.rowless_costs, more) if more else None

    def add_commit(
        self,
        writer: TableWriter,
        kind: str,
        facts: Mapping[str, Any] | None = None,
        rowless_costs: ExtractionCosts | None = None,
        positions: Mapping[str, Any] | None = None,
    ) -> None:
        """Makes a change (`changing`) a commit of the given `kind`. `rowless_costs`: see `append`."""
        if self._mark is None:
            # Without a mark, this row takes effect as the mark would, so all files that it names must be on the disk first.
            writer.sync()
        writer.row = row = self._next(kind, positions or {}, facts, rowless_costs, writer.versions)
        writer.add_columns("commits", commits.to_columns(row))
        writer.commit = row.seq

    @contextmanager
    def changing(self, job: str | None = None) -> Iterator[TableWriter]:
        """Flushes the log and changes the tables in the block; only one change at a time.

        The change is durable and visible afterwards. After an error, nothing has changed. Only after StoreFolderLost or
        StoreStopped is it unknown whether the change is durable: the next opening shows that, and nothing can be written until
        then.

        With a `job`, the block runs concurrently with commits; the write lock is held, under the job's name, only while the
        change begins and while it is published. Without a `job`, the caller must hold the write lock.
        """
        with self._locked_for(job):
            if self._unfinished:
                self._undo()
            pending, size = self.tables.pending, self.pending_bytes
            sealed, writer = self._files.seal(), self.tables.writer()
            writer.commit = self.last.seq
        self._unfinished = True
        try:
            writer.add_commits(pending)
            yield writer
            self._check()
            if writer.handles:
                writer.sync()
                self._write_mark(writer)
        except StoreStopped:
            raise
        except BaseException:
            # If undoing fails, the next change or opening tries again. If the folder is lost, another store may be in its
            # place, so nothing is undone.
            try:
                self._undo()
            except Exception:
                logger.exception("change_not_undone")
            raise
        with (
            self._locked_for(job, writes=False),
            self.write_lock.must_succeed(f"the change after commit {self.last.seq} is on the disk and not in memory"),
            self._visible,
        ):
            self._unfinished = False
            self.tables.publish(writer, len(pending))
            self.pending_bytes -= size
            if writer.row is not None:
                self._note(writer.row)
        self._check()
        self._files.remove(sealed)

    def _locked_for(self, job: str | None, *, writes: bool = True) -> AbstractContextManager[None]:
        """Holds the write lock under the name `job`; if `job` is None, the caller already holds it."""
        return nullcontext() if job is None else self.write_lock.hold(job, writes=writes)

    def _undo(self) -> None:
        self._check()
        self.tables.undo()
        self._unfinished = False

    def _write_mark(self, writer: TableWriter) -> None:
        """Makes the change durable by replacing the mark. After any error except StoreStopped, the old mark is on the disk."""
        if self._mark is None:
            return
        mark = Mark(writer.commit, writer.versions)
        try:
            write_mark(self._folder, mark)
        except BaseException:
            # If the last flush of the folder failed, a power loss may leave either mark, so both changes must stay.
            with self.write_lock.must_succeed("a change of the tables may have taken effect or not"):
                if read_mark(self._folder) != self._mark:
                    raise
            raise
        self._mark = mark

    def now(self) -> tuple[Commit, TableView]:
        """Returns the last commit and the tables as of that commit. Thread-safe."""
        with self._visible:
            return self.last, self.tables.view()

    def use_dim(self, dim: int) -> None:
        """See `Tables.use_dim`."""
        self.tables.use_dim(dim)
        self._schemas = self._files.schemas = schemas(dim)

    def _next(
        self,
        kind: str,
        positions: Mapping[str, Any],
        facts: Mapping[str, Any] | None,
        rowless_costs: ExtractionCosts | None,
        versions: Mapping[str, int] | None = None,
    ) -> CommitRow:
        facts = {**(facts or {}), **({} if rowless_costs is None else {"bygone": rowless_costs})}
        others = {name: version for name, version in (versions or {}).items() if name != "commits"}
        return CommitRow(self.last.seq + 1, time.time(), kind, others, positions, facts)

    def _note(self, row: CommitRow) -> None:
        """Records a durable commit as the last commit."""
        with suppress(OSError):  # the commit is valid; on a full disk the file keeps an earlier number or is missing
            self._head.write(row.seq)
        self.add(row)

    def drop_torn(self, before: float) -> None:
        """Deletes the unfinished commits that openings before `before` (Unix seconds) set aside."""
        self._files.drop_torn(before)

    def close(self) -> None:
        self._files.close()
        self._head.close()
