"""Scopes that are in use: built when they are first asked of, brought up to date when they are asked again, and given back.

A commit does nothing but note what it touched. So scopes cost it nothing, and one that nobody asks of costs nobody anything.
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
from store.scope.changes import Changes, batch_of, held_bytes, restore_documents, share_of_dead, share_of_log
from store.scope.frozen_index import FrozenIndex, freeze
from store.scope.nearly_whole_index import NearlyWholeIndex, fill
from store.scope.scoped_index import scoped_index
from store.snapshot import Snapshot
from store.types import Document, SynonymRule

HELD_SCOPES = 32
"""Scopes that are held at once; the one that was not asked of for longest goes first."""

HELD_BYTES = 1 << 30
"""About how much memory they may take together. One that takes more alone is held until another is asked of."""

IDLE_S = 900.0
"""After how long without a question a scope is given back."""

FOLLOWED_PASSAGES = 50
FOLLOWED_SHARE = 0.05
"""New passages, and their share of those in the scope, up to which following is faster than building anew."""

LOG_SHARE = 0.5
DEAD_SHARE = 0.5
"""Shares of the graph that is in logs, and of rows that are dead, from which on a scope is built anew."""

NEARLY_WHOLE_SHARE = 0.9
"""Share of all passages from which on a scope shares the rows of the whole memory."""

BUILD_TRIES = 5
"""How often a scope is built again because a purge took away what it was being built from."""

Wanted = Callable[[Document], bool]


@dataclass(slots=True)
class _Scope:
    lock: threading.Lock = field(default_factory=threading.Lock)
    index: LiveIndex | None = None
    """None before it is built, and where every document is in the scope."""
    memory: DocumentSnapshot | None = None
    asked: float = 0.0


class Scopes:
    """May be asked from any thread.

    `applying` is held while a commit is applied to the live index, `current` gives that index and its snapshot.
    """

    def __init__(
        self,
        rule: SynonymRule,
        applying: threading.Lock,
        current: Callable[[], tuple[LiveIndex, Snapshot]],
    ) -> None:
        self._rule = rule
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
        """About how much memory the scopes take."""
        indexes = [scope.index for scope in list(self._scopes.values())]
        return sum(held_bytes(index) for index in indexes if index is not None)

    def note(self, commit: int, changes: Changes) -> None:
        """A commit was applied. The caller holds `applying`."""
        self._log.add(commit, changes)

    def clear(self) -> None:
        """Another index takes the place of the live one. The caller holds `applying`."""
        self._log.clear(self._current()[1].commit)
        with self._lock:
            self._scopes.clear()

    def drop_idle(self) -> None:
        """Gives back what nobody has asked of for `IDLE_S`."""
        with self._lock:
            for key in [key for key, scope in self._scopes.items() if time.monotonic() - scope.asked > IDLE_S]:
                del self._scopes[key]

    def memory(self, key: Hashable, wanted: Wanted) -> DocumentSnapshot:
        """The memory of the documents that `wanted` accepts, as of the last commit. `key` stands for `wanted`."""
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
                if self.count <= HELD_SCOPES and self.bytes <= HELD_BYTES:
                    break
                if other != key:
                    del self._scopes[other]

    def _followed(self, scope: _Scope, wanted: Wanted) -> DocumentSnapshot | None:
        """The scope brought up to the last commit; None where it has to be built."""
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
            if isinstance(scope.index, NearlyWholeIndex):
                scope.index.grow(whole)
            batch = batch_of(changes, scope.index, whole, wanted)
        if batch is None:
            before = scope.memory
            scope.memory = DocumentSnapshot(before.snapshot.at(now.commit, now.time), before.documents, before.holders)
            return scope.memory
        index, scope.memory = scope.index, None  # Whatever fails from here on, it is built anew.
        if len(batch.passages) > max(FOLLOWED_PASSAGES, FOLLOWED_SHARE * index.living_passages):
            return None
        if index.sketches.due:
            index.sketches.sort(index.phrase_vectors)
        try:
            index.apply(plan(index, batch, self._rule, time.time()))
        except IncompleteBatch:
            return None
        restore_documents(index, batch)
        if share_of_log(index) > LOG_SHARE or share_of_dead(index) > DEAD_SHARE:
            return None
        return self._publish(scope, index, now)

    def _built(self, scope: _Scope, wanted: Wanted) -> DocumentSnapshot:
        for _ in range(BUILD_TRIES):
            with self._applying:
                whole = freeze(*self._current())
            documents = chosen(whole, wanted)
            if len(documents) == len(whole.documents):
                scope.index = None
                scope.memory = DocumentSnapshot(whole.snapshot, whole.documents, whole.holders)
                return scope.memory
            held = whole.holders.held_by(documents)
            nearly_whole = None
            if _is_nearly_whole(whole, held[0]):
                with self._applying:
                    whole = freeze(*self._current())
                    nearly_whole = NearlyWholeIndex(whole.index)
                documents = chosen(whole, wanted)
            try:
                if nearly_whole is not None:
                    fill(nearly_whole, whole, documents, self._rule)
                    return self._publish(scope, nearly_whole, whole.snapshot)
                return self._publish(scope, scoped_index(whole, documents, held, self._rule), whole.snapshot)
            except KeyError:
                # A purge beside this took a text away that nothing needs any more, but that this commit still has.
                continue
        raise StoreError("the memory changes faster than this scope can be built; ask again")

    @staticmethod
    def _publish(scope: _Scope, index: LiveIndex, of: Snapshot) -> DocumentSnapshot:
        scope.index = index
        scope.memory = DocumentSnapshot(
            Snapshot(index, of.commit, of.time), index.documents.copy(), index.holders.copy()
        )
        return scope.memory


def chosen(whole: FrozenIndex, wanted: Wanted) -> dict[str, Document]:
    """The documents that `wanted` accepts, by URI."""
    return {uri: document for uri, document in whole.documents.items() if wanted(document)}


def _is_nearly_whole(whole: FrozenIndex, passages: NDArray[np.int64]) -> bool:
    """Whether so many of all passages live in the scope that a question costs hardly more than among those alone."""
    return len(passages) >= NEARLY_WHOLE_SHARE * max(whole.snapshot.n_passages, 1)


def past_memory(whole: FrozenIndex, documents: dict[str, Document], rule: SynonymRule) -> tuple[DocumentSnapshot, int]:
    """The memory of some documents of an earlier commit, and about how many bytes it takes."""
    index = scoped_index(whole, documents, whole.holders.held_by(documents), rule)
    snapshot = Snapshot(index, whole.snapshot.commit, whole.snapshot.time)
    return DocumentSnapshot(snapshot, index.documents, index.holders), held_bytes(index)
