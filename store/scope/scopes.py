"""Scopes in use: built on first use, updated on later uses, dropped when idle.

A commit only records its changes, so scopes hardly slow down commits, and an unused scope takes no time.
"""

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from store.change.plan import plan, plan_removal
from store.change.synonym_change import plan_synonyms
from store.errors import IncompleteBatch, StoreError
from store.index.live_index import LiveIndex
from store.scope.changes import (
    Changes,
    RecentChanges,
    batch_of,
    index_bytes,
    restore_documents,
    share_of_changes,
    share_of_dead,
)
from store.scope.scoped_index import scoped_index
from store.snapshot import DocumentSnapshot, Snapshot
from store.types import Document

MAX_CACHED_SCOPES = 32
"""Maximum number of scopes in memory; the least recently used one is dropped first."""

MAX_CACHED_BYTES = 1 << 30
"""Approximate memory limit of all scopes in bytes. A single scope above the limit stays until another scope is used."""

IDLE_S = 900.0
"""Seconds without a query after which a scope is dropped."""

FOLLOWED_PASSAGES = 50
FOLLOWED_SHARE = 0.05
"""Up to this number of new passages, or this share of the scope's passages, an update is faster than a rebuild."""

CHANGED_SHARE = 0.5
DEAD_SHARE = 0.5
"""A scope is rebuilt above this share of changed edges or this share of dead rows."""

FOLDED_SHARE = 0.05
"""Share of changed edges above which the matrices of a new scope are folded, that is, merged into their bases."""

SHARED_ROWS_SHARE = 0.9
"""Minimum share of all passages with which a scope shares the rows of the whole memory, because searching all rows is then
hardly slower than searching only the scope's rows."""

BUILD_TRIES = 5
"""Attempts to build a scope; a concurrent purge can make an attempt fail."""

DocumentFilter = Callable[[Document], bool]


@dataclass(slots=True)
class _Scope:
    lock: threading.Lock = field(default_factory=threading.Lock)
    index: LiveIndex | None = None
    """None before the index is built, and also if the scope contains every document."""
    snapshot: DocumentSnapshot | None = None
    used_at: float = 0.0


class Scopes:
    """All scopes in use. Thread-safe."""

    def __init__(self, whole: Callable[[], AbstractContextManager[tuple[LiveIndex, Snapshot]]]) -> None:
        """`whole` yields the index of all documents and its snapshot; the index must not change during the block."""
        self._whole = whole
        self._recent = RecentChanges()
        self._scopes: dict[Hashable, _Scope] = {}
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        return len(self._scopes)

    @property
    def bytes(self) -> int:
        """Estimates the memory of all scopes in bytes."""
        indexes = [scope.index for scope in list(self._scopes.values())]
        return sum(index_bytes(index) for index in indexes if index is not None)

    def note(self, commit: int, changes: Changes) -> None:
        """Records the changes of a commit. Must be called while the commit is applied to the index."""
        self._recent.add(commit, changes)

    def clear(self, commit: int) -> None:
        """Drops all scopes, because a new index, as of `commit`, replaces the live one."""
        self._recent.clear(commit)
        with self._lock:
            self._scopes.clear()

    def drop_idle(self) -> None:
        """Drops the scopes that no query has used for `IDLE_S` seconds."""
        with self._lock:
            for key in [key for key, scope in self._scopes.items() if time.monotonic() - scope.used_at > IDLE_S]:
                del self._scopes[key]

    def snapshot(self, key: Hashable, wanted: DocumentFilter) -> DocumentSnapshot:
        """Returns the memory of the documents that `wanted` accepts, as of the last commit. `key` identifies `wanted`."""
        with self._lock:
            scope = self._scopes.setdefault(key, _Scope())
            scope.used_at = time.monotonic()
        with scope.lock:
            before, scope.snapshot = scope.snapshot, None  # after a failure, the scope is rebuilt
            found = self._followed(scope.index, before, wanted) if before is not None else None
            if found is None:
                scope.index, found = self._built(wanted)
            scope.snapshot = found
        self._make_room(key)
        return found

    def _make_room(self, key: Hashable) -> None:
        self.drop_idle()
        with self._lock:
            for other in sorted(self._scopes, key=lambda each: self._scopes[each].used_at):
                if self.count <= MAX_CACHED_SCOPES and self.bytes <= MAX_CACHED_BYTES:
                    break
                if other != key:
                    del self._scopes[other]

    def _followed(
        self, index: LiveIndex | None, before: DocumentSnapshot, wanted: DocumentFilter
    ) -> DocumentSnapshot | None:
        """Updates a scope's `index`, which is as of `before`, to the last commit. Returns the scope's snapshot, or None if it
        must be rebuilt."""
        with self._whole() as (whole, now):
            if before.snapshot.commit == now.commit:
                return before
            changes = self._recent.since(before.snapshot.commit)
            if changes is None:
                return None
            if index is None:
                if not all(wanted(whole.documents[uri]) for uri in changes.documents if uri in whole.documents):
                    return None
                return DocumentSnapshot.copy_of(now, whole)
            if index.purged_rows != whole.purged_rows:
                return None  # a purged text is missing, or has another row if it was added again
            if index.shares_rows:
                index.share_rows(whole)
            batch = batch_of(changes, index, whole, wanted)
        if batch is None:
            return DocumentSnapshot(before.snapshot.at(now.commit, now.time), before.documents, before.holders)
        if len(batch.passages) > max(FOLLOWED_PASSAGES, FOLLOWED_SHARE * index.living.passages):
            return None
        if index.sketches.due:
            index.sketches.fold()
        try:
            index.apply(plan(index, batch, time.time()))
        except IncompleteBatch:
            return None
        restore_documents(index, batch)
        if share_of_changes(index) > CHANGED_SHARE or share_of_dead(index) > DEAD_SHARE:
            return None
        return DocumentSnapshot.copy_of(Snapshot(index, now.commit, now.time), index)

    def _built(self, wanted: DocumentFilter) -> tuple[LiveIndex | None, DocumentSnapshot]:
        """Returns a scope's index, or None if it contains every document, and its snapshot."""
        for _ in range(BUILD_TRIES):
            with self._whole() as (live, now):
                whole = live.copy()
            documents = {uri: document for uri, document in whole.documents.items() if wanted(document)}
            if len(documents) == len(whole.documents):
                return None, DocumentSnapshot(now, whole.documents, whole.holders)
            held = whole.holders.held_by(documents)
            try:
                if len(held[0]) >= SHARED_ROWS_SHARE * len(whole.passages):
                    index = without(whole, documents)
                else:
                    index = scoped_index(whole, documents, held)
            except (KeyError, IncompleteBatch):
                # A concurrent purge removed a text that only the copied, older index needs.
                continue
            return index, DocumentSnapshot.copy_of(Snapshot(index, now.commit, now.time), index)
        raise StoreError("the memory changes faster than this scope can be built; try again")


def without(whole: LiveIndex, documents: Mapping[str, Document]) -> LiveIndex:
    """Removes all documents except `documents` from `whole`, a copy of the live index, as a commit would; returns it."""
    delta = plan_removal(whole, documents)
    plan_synonyms(whole, delta)
    whole.change_documents(delta)
    fold_changes(whole)
    return whole


def fold_changes(index: LiveIndex) -> None:
    """Folds the matrices of an index that will hardly change any more, if their many changes would slow down queries."""
    if share_of_changes(index) > FOLDED_SHARE:
        for matrix in index.matrices.values():
            matrix.fold()
