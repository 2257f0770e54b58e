"""Looking back: the memory as of an earlier commit."""

import threading
from collections.abc import Callable

from store.document_snapshot import DocumentSnapshot
from store.errors import StoreError
from store.index.live_index import LiveIndex
from store.index.load import load_past_index
from store.lance.tables import Tables
from store.log.commits import CommitLog
from store.log.write_lock import WriteLock
from store.scope.frozen_index import FrozenIndex, freeze
from store.snapshot import Snapshot


class PastCommits:
    """Loads earlier commits, and keeps the last one loaded: questions about one moment come together."""

    def __init__(
        self, tables: Tables, log: CommitLog, write_lock: WriteLock, current_index: Callable[[], LiveIndex]
    ) -> None:
        self._tables = tables
        self._log = log
        self._write_lock = write_lock
        self._current_index = current_index
        self._loading = threading.Lock()
        self._loaded: DocumentSnapshot | None = None
        self._frozen: FrozenIndex | None = None
        """What scopes of that commit are built from, once one was asked for."""
        self._index: LiveIndex | None = None

    def at(self, moment: float | int) -> DocumentSnapshot | None:
        """The memory as of a commit (an int) or of a time in Unix seconds (a float); None for the last commit.

        Raises StoreError for a commit that is not kept any more or not made yet.
        """
        commit = self._commit(moment)
        if commit >= self._log.last.seq:
            if isinstance(moment, int) and commit > self._log.last.seq:
                raise StoreError(f"there is no commit {commit} yet; the last is {self._log.last.seq}")
            return None
        with self._loading:
            return self._at(commit)

    def frozen_at(self, moment: float | int) -> FrozenIndex | None:
        """The same, for a scope of it."""
        if self.at(moment) is None:
            return None
        with self._loading:
            loaded = self._at(self._commit(moment))
            if self._frozen is None and self._index is not None:
                index = self._index
                index.count_crowds()
                self._frozen = freeze(index, Snapshot(index, loaded.snapshot.commit, loaded.snapshot.time))
            return self._frozen

    def _at(self, commit: int) -> DocumentSnapshot:
        while self._loaded is None or self._loaded.snapshot.commit != commit:
            self._load(commit)
        return self._loaded

    def clear(self) -> None:
        """Frees the commit that was loaded last."""
        with self._loading:
            self._loaded = self._frozen = self._index = None

    def _load(self, commit: int) -> None:
        """Loads `commit`, unless a purge interferes: then nothing is loaded, and the caller tries again."""
        with self._write_lock.hold("look back"):
            self._require_kept(commit)
            index, time = self._current_index(), self._log.times[commit]
            purged_rows, past = index.purged_rows, index.without_documents()
        try:
            with self._tables.pruning_paused():
                past = load_past_index(past, self._tables, commit)
        except (KeyError, IndexError, ValueError):
            # What this commit needs stays in the tables; but the maps from texts to rows are shared with the current index,
            # which has just forgotten some.
            if self._current_index() is index and index.purged_rows == purged_rows:
                raise
        else:
            # A purge beside this may have taken rows away before they were read.
            self._require_kept(commit)
            # Nothing is applied to this index any more, so nothing has to be copied.
            self._loaded = DocumentSnapshot(Snapshot(past, commit, time), past.documents, past.holders)
            self._index, self._frozen = past, None

    def _commit(self, moment: float | int) -> int:
        return self._require_kept(moment if isinstance(moment, int) else self._log.commit_at(moment))

    def _require_kept(self, commit: int | None) -> int:
        earliest = max(self._log.horizon, 1)
        if commit is None or commit < earliest:
            raise StoreError(f"the memory is kept from commit {earliest} on; ask for that one or a later")
        return commit
