"""The store's door: open, ask what is missing, commit, take a snapshot."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import structlog

from store.checkpoint.checkpoint import PREFIX, SnapshotGivenUp, Unusable, capture, discard, write
from store.checkpoint.recovery import start_image
from store.document_snapshot import Pinned
from store.errors import StoreDamaged, StoreError
from store.index.load import load_image, past_image
from store.index.lsh import sort
from store.index.matrix import LiveMatrix
from store.index.state import Delta, Image
from store.index.synonym_recall import Recall, synonym_recall
from store.lance.tables import Tables
from store.log.commits import Commit, CommitLog
from store.log.extraction_costs import together
from store.log.plan import SynonymRule, plan
from store.log.settle import settle
from store.log.store_lock import StoreLock
from store.log.write_lock import WriteLock
from store.log.write_rows import write_rows
from store.maintenance.compaction import SAFE, Upkeep
from store.maintenance.rebuild import catch_up, fresh, worn
from store.maintenance.retention import Purge, Slice
from store.reader import Held
from store.snapshot import Snapshot
from store.types import Batch, EncoderIdentity

log = structlog.get_logger(__name__)

FOLD_SHARE = 0.1
FOLD_LEAST = 50_000
"""A matrix's log is folded once it is longer than both: the cost of folding then is a constant per entry added."""

TRIM_LEAST = 1_000
"""Rows of the log that are worth taking away, with the looks back at their commits, where nothing else is."""

SAVING_LOOK_S = 0.1
"""How often who waits to write a snapshot looks whether there is time left for it."""


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _due(matrix: LiveMatrix) -> bool:
    return matrix.log_length >= max(FOLD_LEAST, FOLD_SHARE * matrix.base_entries)


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit did: its number and time, and how many passages came to life or were forgotten."""

    seq: int
    time: float
    born: int
    died: int


class Store(Held):
    """One store, open in one process. `commit` is for one thread at a time; everything else may be called from any."""

    def __init__(
        self, folder: Path, encoder: EncoderIdentity, rule: SynonymRule | None = None, lock: StoreLock | None = None
    ) -> None:
        """Opens `folder`, creating it if need be. Raises StoreLocked, EncoderMismatch, NewerFormat or StoreDamaged.

        `lock` is the folder's lock where the caller took it already (before loading a model, say).
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.rule = rule or SynonymRule()
        self._lock = lock or StoreLock(folder)
        try:
            if (folder / "restoring").exists():
                raise StoreDamaged(f"a restore of the store {folder} was interrupted; run `hippod --restore` again")
            self._tables = Tables(folder, encoder.dim)
            self._log = CommitLog(self._tables, encoder)
            self._tables.assume_synced()
            self.recovered: Sequence[str] = sorted({*self._tables.torn, *self._log.recovered})
            self.found_format = self._log.format
            """The store's format before it was opened, which made it `store.lance.schema.FORMAT`."""
            self._image, self.started = self._open(encoder.dim)
        except (OSError, RuntimeError, ValueError, KeyError, IndexError) as error:
            # What Lance raises for files that are missing or cut, and what reading them wrongly would lead to.
            self._lock.release()
            raise StoreDamaged(
                f"the store {folder} cannot be read ({type(error).__name__}: {_short(error)}); "
                "put a backup in its place with `hippod --restore DIR`"
            ) from error
        except BaseException:
            self._lock.release()
            raise
        self._writing = WriteLock()
        self._changing = False
        """While a commit is being taken over into the image."""
        self._looking_back = threading.Lock()
        self._past: Pinned | None = None
        """The last earlier commit that was asked for: questions about one moment come together."""
        self._snapshot = Snapshot(self._image, self._log.last.seq, self._log.last.time)
        self.recall: Recall | None = None
        """What `measure` last found."""
        self._saving = threading.Lock()
        self._upkeep = Upkeep(self._tables, self._log, self._writing)
        self._folder = ThreadPoolExecutor(1, thread_name_prefix="fold")
        self._folding: Future[None] | None = None
        self._purge = None
        if self._saved is None:
            self._settle()

    def _settle(self) -> None:
        """Takes away synonym edges that an earlier release's rule made and this one's does not, in commits of their own."""
        while delta := settle(self._image, self.rule):
            with self._writing.held("commit"):
                try:
                    write_rows(self._tables, self._image, delta, self._log.last.seq + 1)
                    commit = self._log.append("settle", {})
                except BaseException:
                    self._undo()
                    raise
                self._take_over(delta, commit)
            log.info("synonyms_settled", edges=len(delta.synonyms.a))

    def _open(self, dim: int) -> tuple[Image, str]:
        """The image, and how it came about: for the log."""
        times, horizon = self._log.times, self._log.horizon
        try:
            image, commit = start_image(self.folder, self._tables, dim, self.rule, times, horizon)
        except Unusable as reason:
            image = load_image(self._tables, dim, self.rule.cap)
            # No later start may use it either: numbers of purged rows are given again from here on.
            discard(self.folder)
            self._saved: int | None = None
            """The commit of a snapshot that a start can use."""
            return image, f"rebuilt from the tables; no snapshot was used: {reason}"
        self._saved = commit
        return image, f"snapshot of commit {commit}, and the commits after it"

    @property
    def held(self) -> dict[str, float]:
        """By job: the longest time in seconds that it made commits wait at a stretch, since the store was opened."""
        return self._writing.longest

    def commit(self, batch: Batch) -> Committed:
        """Makes `batch` part of the memory: durable and visible when it returns, or not at all."""
        with self._writing.held("commit"):
            delta = plan(self._image, batch, self.rule, time.time())
            if self._purge is not None:
                self._purge.spare(delta)
            try:
                write_rows(self._tables, self._image, delta, self._log.last.seq + 1)
                held_before = (self._image.living_passages, self._image.living_phrases, self._image.living_triples)
                commit = self._log.append("change", batch.positions, {"before": held_before})
            except BaseException:
                self._undo()
                raise
            known = len(self._image.passages)
            held = {row: bool(row < known and self._image.users[row]) for row in delta.users}
            self._changing = True
            try:
                self._take_over(delta, commit)
            finally:
                self._changing = False
            born = sum(1 for row, users in delta.users.items() if users and not held[row])
            died = sum(1 for row, users in delta.users.items() if not users and held[row])
            self._fold_when_due()
            self._upkeep.merge_when_due()
            return Committed(commit.seq, commit.time, born, died)

    def _take_over(self, delta: Delta, commit: Commit) -> None:
        """Makes the image what the tables hold by now."""
        try:
            self._image.apply(delta)
        except Exception:
            # The commit stands. An image that took over a part of it would answer wrongly, or not at all, from now on.
            log.exception("image_spoiled", commit=commit.seq)
            spoiled, self._image = self._image, load_image(self._tables, self._image.dim, self.rule.cap)
            self._image.number_after(spoiled)
        self._snapshot = Snapshot(self._image, commit.seq, commit.time)

    def _undo(self) -> None:
        """Brings back the tables that a failed commit had already changed (a full disk, say)."""
        for name, version in self._log.last.versions.items():
            if self._tables.version(name) != version:
                self._tables.bring_back(name, version, self._log.last.seq, self._image.next_id.get(name))

    def _fold_when_due(self) -> None:
        """Has long logs folded in the background; commits and queries go on meanwhile."""
        due = [name for name, matrix in self._image.matrices.items() if _due(matrix)]
        if (due or self._image.sketches.due) and (self._folding is None or self._folding.done()):
            self._folding = self._folder.submit(self._fold, due)

    def _fold(self, names: Sequence[str]) -> None:
        try:
            with self._saving:
                self._fold_each(names)
        except Exception:
            log.exception("fold_failed")
            raise

    def _fold_each(self, names: Sequence[str]) -> None:
        image = self._image
        for name in names:
            with self._writing.held("fold"):
                view = image.matrices[name].view(image.shape(name))
            folded = view.merged()
            with self._writing.held("fold"):
                self._adopt(image, {name: folded}, {name: view.log_length})
        if image.sketches.due:
            bands = sort(image.sketches.view())
            with self._writing.held("fold"):
                image.sketches.adopt(bands)

    def _adopt(self, image: Image, folded: Mapping[str, Any], lengths: Mapping[str, int]) -> None:
        for name, matrix in folded.items():
            image.matrices[name].adopt(matrix, lengths[name])
        if self._image is image:
            self._snapshot = Snapshot(image, self._snapshot.commit, self._snapshot.time)

    def fold(self) -> None:
        """Folds every matrix's log into its base, however short it is."""
        self._fold(list(self._image.matrices))

    def save(self, over: Callable[[], bool] = lambda: False) -> bool:
        """Folds, and writes the memory down for a fast start; False when that is done already. Raises OSError.

        Commits wait only while the image is taken hold of: some 50 ms a million phrases. `over`: whether the time for it is
        over; then it raises SnapshotGivenUp, and the snapshot before stays the last.
        """

        def on_time() -> None:
            if over():
                raise SnapshotGivenUp

        while not self._saving.acquire(timeout=SAVING_LOOK_S):
            on_time()
        try:
            return self._save(on_time)
        finally:
            self._saving.release()

    def _save(self, on_time: Callable[[], None]) -> bool:
        """For who has `_saving`."""
        with self._writing.held("snapshot"):
            image, commit = self._image, self._log.last
            if self._saved == commit.seq and (self.folder / f"{PREFIX}{commit.seq}").exists():
                return False
            captured = capture(image, commit.seq, commit.time)
        if captured is None:
            return False
        folded = {}
        for name, view in captured.matrices.items():
            on_time()
            folded[name] = view.merged()
        lengths = {name: view.log_length for name, view in captured.matrices.items()}
        with self._writing.held("snapshot"):
            self._adopt(image, folded, lengths)
        write(self.folder, captured, folded, self.rule, on_time)
        self._saved = commit.seq
        return True

    def compact(self, least: int = 2, safe: timedelta = SAFE) -> None:
        """Merges fragments, rewrites tables that have `least` or more even then, and drops versions older than `safe`.

        Commits and queries go on meanwhile. No version is needed for looking back (`at`): rows name their commits.
        """
        self._upkeep.compact(least, safe)

    def purge(self, keep: timedelta) -> int:
        """Takes off the disk what no commit younger than `keep` needs; returns how many rows that were.

        What goes is worked out beside commits, which wait for one slice of rows at a time (`store.history`).
        """
        horizon = self._log.before(time.time() - keep.total_seconds())
        if horizon is None:
            return 0
        with self._upkeep.undisturbed():
            count = self._sweep(horizon)
            self._upkeep.reclaim(count > 0)
            self._upkeep.trim(horizon, 1 if count else TRIM_LEAST)
        return count

    def _sweep(self, horizon: int) -> int:
        with self._writing.held("purge"):
            purge = self._purge = Purge(self._image, horizon, self._log.last.seq)
        try:
            return sum(self._delete(purge, part) for part in purge.mark(self._tables))
        finally:
            self._purge = None

    def _delete(self, purge: Purge, part: Slice) -> int:
        """Takes what is left of a slice out of the tables and the image, as one commit; returns how many rows that were."""
        with self._writing.held("purge"):
            part = purge.still(part)
            if self._image is not purge.image or not len(part):
                return 0
            bygone = together(self._log.last.bygone, costs) if (costs := part.costs()) else None
            self._log.horizon = max(self._log.horizon, purge.horizon)  # first: who looks back beside this asks for it
            try:
                for name, ids in part.ids().items():
                    self._tables.delete(name, ids)
                self._log.append("purge", {}, {"horizon": purge.horizon}, bygone)
            except BaseException:
                self._undo()
                raise
            if part.contents is not None:
                self._image.forget(part.contents, part.forgotten())
            return len(part)

    def renew(self, least: bool = True) -> bool:
        """Loads the image anew where much of it was purged (without `least`: in any case); whether it did.

        Commits go on while it is loaded, and wait while those of that time are applied to it. For that long both are in
        memory.
        """
        if least and not worn(self._image):
            return False
        with self._saving, self._upkeep.undisturbed():
            with self._writing.held("renew"):
                commit = self._log.last
                beside = Tables(self.folder, self._image.dim, mend=False)
            image = fresh(beside, self._image.dim, self.rule)
            with self._writing.held("renew"):
                catch_up(image, self._image, self._tables, self.rule, commit.seq)
                self._changing = True
                try:
                    self._image = image
                    self._snapshot = Snapshot(image, self._snapshot.commit, self._snapshot.time)
                finally:
                    self._changing = False
        with self._looking_back:
            self._past = None
        return True

    def measure(self, sample: int = 500) -> Recall | None:
        """How many of the synonym edges that there should be there are, by a sample; None where all are compared exactly."""
        if self._image.many:
            self.recall = synonym_recall(self.snapshot(), self.rule, sample)
        return self.recall

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """While this lasts no table's files are rearranged or dropped; commits and queries go on."""
        with self._saving, self._upkeep.undisturbed():
            yield

    @contextmanager
    def between_commits(self) -> Iterator[Commit]:
        """Commits wait for as long as this lasts; gives the last one."""
        with self._writing.held("backup"):
            yield self._log.last

    def at(self, moment: float | int) -> Snapshot:
        """The memory as of a commit (an int) or of a time in Unix seconds (a float). Raises StoreError if that is not kept."""
        past = self._earlier(moment)
        return past.snapshot if past is not None else self._snapshot

    def pinned_at(self, moment: float | int) -> Pinned:
        """As `at`, with the names of the documents of then."""
        return self._earlier(moment) or self.pinned()

    def _earlier(self, moment: float | int) -> Pinned | None:
        """The memory as of an earlier commit than the last; None where it is the last that is asked for."""
        commit = self._check_kept(moment if isinstance(moment, int) else self._log.before(moment))
        if commit >= self._log.last.seq:
            if isinstance(moment, int) and commit > self._log.last.seq:
                raise StoreError(f"there is no commit {commit} yet; the last is {self._log.last.seq}")
            return None
        with self._looking_back:
            while self._past is None or self._past.snapshot.commit != commit:
                self._look_back(commit)
            return self._past

    def _look_back(self, commit: int) -> None:
        """Makes `_past` the memory as of `commit`, unless a purge went by; then there may be none."""
        with self._writing.held("look back"):
            self._check_kept(commit)
            present, forgotten, made = self._image, self._image.forgotten, self._log.times[commit]
            then = present.past()
        try:
            with self._tables.pinned():
                image = past_image(then, self._tables, commit)
        except (KeyError, IndexError, ValueError):
            # What this commit needs stays; but where a text stands is shared with the present, which has just forgotten some.
            if self._image is present and present.forgotten == forgotten:
                raise
        else:
            # A purge that went by may have taken rows away before they were read.
            self._check_kept(commit)
            # Nothing is applied to this image any more: nothing has to be copied.
            self._past = Pinned(Snapshot(image, commit, made), image.documents, image.users)

    def _check_kept(self, commit: int | None) -> int:
        earliest = max(self._log.horizon, 1)
        if commit is None or commit < earliest:
            raise StoreError(f"the memory is kept from commit {earliest} on; ask for that one or a later")
        return commit

    def close(self) -> None:
        """Lets go of the store; nothing is written. Maintenance that a thread is at keeps the lock until the process ends."""
        self._folder.shutdown(cancel_futures=True)
        self._upkeep.close()
        if self._saving.acquire(blocking=False):
            if self._upkeep.rests():
                with self._writing.held("close"):
                    self._lock.release()
            self._saving.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
