"""Scopes in use: built on first use, updated on later use, dropped when idle.

A commit only logs its changes, so scopes add no cost to commits, and an unused scope costs nothing.
"""

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from store.change.plan import plan
from store.document_snapshot import DocumentSnapshot
from store.errors import IncompleteBatch, StoreError
from store.index.live_index import LiveIndex
from store.scope.change_log import ChangeLog
from store.scope.changes import Changes, batch_of, index_bytes, restore_documents, share_of_dead, share_of_log
from store.scope.frozen_index import FrozenIndex, freeze
from store.scope.masked_index import MaskedIndex, fill_masked_index
from store.scope.scoped_index import scoped_index
from store.snapshot import Snapshot
from store.types import Document, SynonymRule

MAX_CACHED_SCOPES = 32
"""Maximum number of scopes in memory; the least recently used one is dropped first."""

MAX_CACHED_BYTES = 1 << 30
"""Approximate memory limit of all scopes in bytes. A single larger scope stays until another one is used."""

IDLE_S = 900.0
"""Seconds without a query after which a scope is dropped."""

FOLLOWED_PASSAGES = 50
FOLLOWED_SHARE = 0.05
"""Number of new passages, and their share of the scope's passages, up to which an update is faster than a rebuild."""

LOG_SHARE = 0.5
DEAD_SHARE = 0.5
"""Shares of the graph in logs, and of dead rows, above which a scope is rebuilt."""

MASKED_INDEX_SHARE = 0.9
"""Minimum share of all passages for a scope that shares the rows of the whole memory."""

BUILD_TRIES = 5
"""Attempts to build a scope; a concurrent purge can make an attempt fail."""

DocumentFilter = Callable[[Document], bool]


@dataclass(slots=True)
class _Scope:
    lock: threading.Lock = field(default_factory=threading.Lock)
    index: LiveIndex | None = None
    """None before it is built, and if the scope contains every document."""
    memory: DocumentSnapshot | None = None
    asked: float = 0.0


class Scopes:
    """All scopes in use. Thread-safe.

    `applying` is held while a commit is applied to the live index; `current` returns that index and its snapshot.
    """

    def __init__(
        self,
        applying: threading.Lock,
        current: Callable[[], tuple[LiveIndex, Snapshot]],
    ) -> None:
        self._applying = applying
        self._current = current
        self._log = ChangeLog()
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
        """Logs the changes of a commit that was applied. The caller holds `applying`."""
        self._log.add(commit, changes)

    def clear(self) -> None:
        """Drops all scopes because another index replaces the live one. The caller holds `applying`."""
        self._log.clear(self._current()[1].commit)
        with self._lock:
            self._scopes.clear()

    def drop_idle(self) -> None:
        """Drops scopes without a query for `IDLE_S`."""
        with self._lock:
            for key in [key for key, scope in self._scopes.items() if time.monotonic() - scope.asked > IDLE_S]:
                del self._scopes[key]

    def memory(self, key: Hashable, wanted: DocumentFilter) -> DocumentSnapshot:
        """Returns the memory of the documents that `wanted` accepts, as of the last commit. `key` identifies `wanted`."""
        with self._lock:
            scope = self._scopes.setdefault(key, _Scope())
            scope.asked = time.monotonic()
        with scope.lock:
            found = self._followed(scope, wanted) or self._built(scope, wanted)
        self._make_room(key)
        return found

    def _make_room(self, key: Hashable) -> None:
        self.drop_idle()
        with self._lock:
            for other in sorted(self._scopes, key=lambda each: self._scopes[each].asked):
                if self.count <= MAX_CACHED_SCOPES and self.bytes <= MAX_CACHED_BYTES:
                    break
                if other != key:
                    del self._scopes[other]

    def _followed(self, scope: _Scope, wanted: DocumentFilter) -> DocumentSnapshot | None:
        """Returns the scope updated to the last commit; None if it must be rebuilt."""
        if scope.memory is None:
            return None
        with self._applying:
            whole, now = self._current()
            if scope.memory.snapshot.commit == now.commit:
                return scope.memory
            changes = self._log.since(scope.memory.snapshot.commit)
            if changes is None:
                return None
            if scope.index is None:
                if not all(wanted(whole.documents[uri]) for uri in changes.documents if uri in whole.documents):
                    return None
                scope.memory = DocumentSnapshot(now, whole.documents.copy(), whole.holders.copy())
                return scope.memory
            if isinstance(scope.index, MaskedIndex):
                scope.index.grow(whole)
            batch = batch_of(changes, scope.index, whole, wanted)
        if batch is None:
            before = scope.memory
            scope.memory = DocumentSnapshot(before.snapshot.at(now.commit, now.time), before.documents, before.holders)
            return scope.memory
        index, scope.memory = scope.index, None  # After any failure from here on, the scope is rebuilt.
        if len(batch.passages) > max(FOLLOWED_PASSAGES, FOLLOWED_SHARE * index.living_passages):
            return None
        if index.sketches.due:
            index.sketches.sort(index.phrase_vectors)
        try:
            index.apply(plan(index, batch, whole.rule, time.time()))
        except IncompleteBatch:
            return None
        restore_documents(index, batch)
        if share_of_log(index) > LOG_SHARE or share_of_dead(index) > DEAD_SHARE:
            return None
        return self._publish(scope, index, now)

    def _built(self, scope: _Scope, wanted: DocumentFilter) -> DocumentSnapshot:
        for _ in range(BUILD_TRIES):
            with self._applying:
                whole = freeze(*self._current())
            documents = select_documents(whole, wanted)
            if len(documents) == len(whole.documents):
                scope.index = None
                scope.memory = DocumentSnapshot(whole.snapshot, whole.documents, whole.holders)
                return scope.memory
            held = whole.holders.held_by(documents)
            masked = None
            if _fits_masked_index(whole, held[0]):
                with self._applying:
                    whole = freeze(*self._current())
                    masked = MaskedIndex(whole.index)
                documents = select_documents(whole, wanted)
            try:
                if masked is not None:
                    fill_masked_index(masked, whole, documents, whole.index.rule)
                    return self._publish(scope, masked, whole.snapshot)
                return self._publish(scope, scoped_index(whole, documents, held, whole.index.rule), whole.snapshot)
            except KeyError:
                # A concurrent purge removed a text that only this older commit needs.
                continue
        raise StoreError("the memory changes faster than this scope can be built; ask again")

    @staticmethod
    def _publish(scope: _Scope, index: LiveIndex, of: Snapshot) -> DocumentSnapshot:
        scope.index = index
        scope.memory = DocumentSnapshot(
            Snapshot(index, of.commit, of.time), index.documents.copy(), index.holders.copy()
        )
        return scope.memory


def select_documents(whole: FrozenIndex, wanted: DocumentFilter) -> dict[str, Document]:
    """Returns the documents that `wanted` accepts, by URI."""
    return {uri: document for uri, document in whole.documents.items() if wanted(document)}


def _fits_masked_index(whole: FrozenIndex, passages: NDArray[np.int64]) -> bool:
    """Whether the scope has so many of all passages that searching all rows costs hardly more than searching its own."""
    return len(passages) >= MASKED_INDEX_SHARE * max(whole.snapshot.n_passages, 1)


def past_memory(whole: FrozenIndex, documents: dict[str, Document], rule: SynonymRule) -> tuple[DocumentSnapshot, int]:
    """Returns the memory of some documents of an earlier commit, and its estimated size in bytes."""
    index = scoped_index(whole, documents, whole.holders.held_by(documents), rule)
    snapshot = Snapshot(index, whole.snapshot.commit, whole.snapshot.time)
    return DocumentSnapshot(snapshot, index.documents, index.holders), index_bytes(index)
