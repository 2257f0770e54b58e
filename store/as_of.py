"""The memory as of an earlier commit: a copy of the live index in which the later commits are undone."""

import threading
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass

from store.change.rewind import rewind
from store.errors import IncompleteBatch, StoreError
from store.index.live_index import LiveIndex
from store.live_memory import LiveMemory
from store.scope.changes import index_bytes
from store.scope.scopes import DocumentFilter, Scopes, fold_changes
from store.snapshot import DocumentSnapshot, Snapshot
from store.types import Pause, no_pause

MAX_CACHED_COMMITS = 4
"""Maximum number of earlier commits in memory; the least recently used commit is dropped first."""

MAX_CACHED_BYTES = 512 << 20
"""Approximate memory limit in bytes for all these commits and their scopes. A larger single commit stays until another is
loaded."""


@dataclass(slots=True)
class _Past:
    """One loaded commit, which shares texts and vectors with the live index."""

    index: LiveIndex
    snapshot: DocumentSnapshot
    scopes: Scopes | None = None
    """The scopes of this commit, keyed by the URIs of their documents: clients that see the same documents share a scope. None
    until the first scope is requested."""
    bytes: int = 0


class PastCommits:
    """Loads earlier commits one at a time and caches the last ones, because successive queries often name the same moment."""

    def __init__(self, live: LiveMemory) -> None:
        self._live = live
        self._commits = live.commits
        self._loading = threading.Lock()
        self._cached: OrderedDict[int, _Past] = OrderedDict()

    @property
    def count(self) -> int:
        return len(self._cached)

    @property
    def bytes(self) -> int:
        """Estimates the memory of the cached commits and their scopes in bytes."""
        return sum(past.bytes for past in list(self._cached.values()))

    def at(self, moment: float | int, pause: Pause = no_pause) -> DocumentSnapshot | None:
        """Returns the memory as of a commit (int) or a time in Unix seconds (float); None for the last commit.

        `pause` is called every few milliseconds of the work. Raises StoreError for a commit that is not kept or not made yet.
        """
        commit = self._earlier_commit(moment)
        if commit is None:
            return None
        with self._loading:
            return self._at(commit, pause).snapshot

    def scoped_at(
        self, wanted: DocumentFilter, moment: float | int, pause: Pause = no_pause
    ) -> DocumentSnapshot | None:
        """Returns the documents that `wanted` accepts, as of `moment`; None if that is the last commit."""
        commit = self._earlier_commit(moment)
        if commit is None:
            return None
        with self._loading:
            past = self._at(commit, pause)
            if past.scopes is None:
                whole = past.index, past.snapshot.snapshot  # `past` itself would stay in memory as long as its scopes
                past.scopes = Scopes(lambda: nullcontext(whole))
            uris = frozenset(uri for uri, document in past.snapshot.documents.items() if wanted(document))
            pause()
            found = past.scopes.snapshot(uris, lambda document: document.uri in uris)
            pause()
            self._weigh(past)
            return found

    def clear(self) -> None:
        """Frees the cached commits."""
        with self._loading:
            self._cached.clear()

    def _earlier_commit(self, moment: float | int) -> int | None:
        """Returns the commit's number; None for the last commit."""
        commit = self._require_kept(moment if isinstance(moment, int) else self._commits.commit_at(moment))
        if commit < self._commits.last.seq:
            return commit
        if isinstance(moment, int) and commit > self._commits.last.seq:
            raise StoreError(f"there is no commit {commit} yet; the last is {self._commits.last.seq}")
        return None

    def _at(self, commit: int, pause: Pause) -> _Past:
        while commit not in self._cached:
            self._load(commit, pause)
        self._cached.move_to_end(commit)
        return self._cached[commit]

    def _load(self, commit: int, pause: Pause) -> None:
        """Loads `commit`. If a purge deletes rows meanwhile, nothing is loaded, and the caller tries again."""
        with self._commits.tables.pruning_paused():
            with self._commits.write_lock.hold("look back", writes=False):
                self._require_kept(commit)
                index, tables, time = self._live.index, self._commits.tables.view(), self._commits.times[commit]
                purged_rows, past = index.purged_rows, index.copy()
            pause()
            try:
                rewind(past, tables, commit, pause)
            except (LookupError, ValueError, IncompleteBatch):
                # The tables keep the rows that this commit needs, but the live index shares its maps from texts to rows and has
                # just removed some entries from them.
                if self._live.index is index and index.purged_rows == purged_rows:
                    raise
                return
        fold_changes(past)
        pause()
        # A concurrent purge may have deleted rows before they were read.
        self._require_kept(commit)
        # This index never changes again, so its containers are not copied.
        loaded = _Past(past, DocumentSnapshot(Snapshot(past, commit, time), past.documents, past.holders))
        self._cached[commit] = loaded
        self._weigh(loaded)

    def _weigh(self, past: _Past) -> None:
        """Updates the size of `past` and drops the least recently used commits above the limits."""
        past.bytes = index_bytes(past.index) + (past.scopes.bytes if past.scopes is not None else 0)
        while len(self._cached) > 1 and (len(self._cached) > MAX_CACHED_COMMITS or self.bytes > MAX_CACHED_BYTES):
            self._cached.popitem(last=False)

    def _require_kept(self, commit: int | None) -> int:
        earliest = max(self._commits.horizon, 1)
        if commit is None or commit < earliest:
            raise StoreError(f"commit {earliest} is the earliest that can be queried; name that commit or a later one")
        return commit
