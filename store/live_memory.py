"""The memory in use: the index that commits change, the snapshot that queries read, and the scopes. They change together."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import structlog

from store.change.load import load_index
from store.index.index_delta import IndexDelta
from store.index.live_index import LiveIndex
from store.log.commit_history import Commit
from store.log.commits import Commits
from store.scope.changes import Changes
from store.scope.scopes import Scopes
from store.snapshot import DocumentSnapshot, Snapshot

logger = structlog.get_logger(__name__)


class LiveMemory:
    """Reading is thread-safe. The caller of a method that changes the memory must hold the write lock."""

    def __init__(self, index: LiveIndex, commits: Commits) -> None:
        """`index` must be as of the last commit of `commits`."""
        self.index = index
        self.commits = commits
        self.snapshot = Snapshot(index, commits.last.seq, commits.last.time)
        self._index_lock = threading.Lock()
        """Must be held, in addition to the write lock, while containers of the index change. Code that copies them must hold
        either lock."""
        self.scopes = Scopes(self.unchanging)

    @contextmanager
    def unchanging(self) -> Iterator[tuple[LiveIndex, Snapshot]]:
        """Yields the index and its snapshot. Changes of the index wait until the block ends, so the block should only copy."""
        with self._index_lock:
            yield self.index, self.snapshot

    def document_snapshot(self) -> DocumentSnapshot:
        """Returns the memory as of the last commit with its documents. Waits while a commit is applied (milliseconds)."""
        with self.unchanging() as (index, snapshot):
            return DocumentSnapshot.copy_of(snapshot, index)

    def apply(self, delta: IndexDelta, commit: Commit) -> None:
        """Applies the change of a durable commit to the index."""
        with self._changing_to(commit.seq):
            self._change(lambda index: index.apply(delta), commit.seq)
            touched = {document.uri for document in delta.documents} | set(delta.removed)
            self.snapshot = Snapshot(self.index, commit.seq, commit.time)
            self.scopes.note(commit.seq, Changes(touched, {extraction.passage for extraction in delta.extractions}))

    def forget(self, contents: str, rows: Sequence[int], commit: int) -> None:
        """Removes from the index the rows that `commit` has purged (`LiveIndex.forget`)."""
        with self._changing_to(commit):
            self._change(lambda index: index.forget(contents, rows), commit)

    def replace(self, index: LiveIndex, commit: int, time: float) -> None:
        """Makes `index`, which is as of `commit`, the live one."""
        with self._changing_to(commit):
            self.index, self.snapshot = index, Snapshot(index, commit, time)
            self.scopes.clear(commit)

    def swap(self, index: LiveIndex, swap: Callable[[], None]) -> None:
        """Calls `swap`, which replaces arrays of `index` by equal arrays, and renews the snapshot. Does nothing if `index` was
        replaced."""
        if self.index is index:
            with self._changing():
                swap()
                self.snapshot = Snapshot(index, self.snapshot.commit, self.snapshot.time)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        assert self.commits.write_lock.is_held
        with self._index_lock:
            yield

    @contextmanager
    def _changing_to(self, commit: int) -> Iterator[None]:
        """Wraps a block that changes the index to match a commit of the tables. If the block fails, the store refuses all later
        writes."""
        failure = f"the index in memory could not be brought to commit {commit}"
        with self.commits.write_lock.must_succeed(failure), self._changing():
            yield

    def _change(self, change: Callable[[LiveIndex], None], commit: int) -> None:
        """Calls `change` with the index. If that fails, replaces the index by a new one loaded from the tables."""
        try:
            change(self.index)
        except Exception:
            # The commit is durable. A partly updated index would give wrong answers or errors.
            logger.exception("index_reloaded", commit=commit)
            index = load_index(self.commits.tables, self.index.dim, self.index.rule)
            index.keep_numbering_of(self.index)
            self.index, self.snapshot = index, Snapshot(index, self.snapshot.commit, self.snapshot.time)
            self.scopes.clear(self.snapshot.commit)
