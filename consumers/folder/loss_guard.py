"""Keeps documents that a scan would forget until somebody confirms it.

Two causes are guarded. A scan misses more than half of a folder's documents: a drive that is mounted empty, a path or a pattern
that is wrong. Or a default exclusion that is newer than the document leaves it out: after an upgrade of hippod. What events say
to be gone is gone. Nothing of this is stored: the next scan, also after a restart, finds the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from consumers.folder.ledger import Ledger
from consumers.folder.pending_removals import PendingRemovals

GUARDED_DOCUMENTS = 5
"""A folder with fewer documents is not guarded: they are read again in no time."""


class LossGuard:
    """For one thread, but for `confirm`."""

    def __init__(
        self, ledger: Ledger, vanished: PendingRemovals, documents: Callable[[bytes], int], *, enabled: bool
    ) -> None:
        """`vanished`: paths of which it is known already that they are gone. `documents`: how many there are in the file at a
        path."""
        self._ledger = ledger
        self._vanished = vanished
        self._documents = documents
        self._enabled = enabled
        self._confirmed = False
        self._held: set[bytes] = set()
        self._excluded: dict[bytes, tuple[str, int]] = {}
        """The reason of each file that waits because of an exclusion, and how many documents are in it."""
        self._excluded_documents: Counter[str] = Counter()
        self.lost = self.known = 0
        """Documents that a scan missed and that wait, and documents of the whole folder, as of the last scan that held any."""

    @property
    def missed(self) -> int:
        """Documents that wait because a scan missed them."""
        return self.lost if self._held else 0

    @property
    def excluded(self) -> dict[str, int]:
        """Documents that wait because a new default exclusion leaves them out, by its reason. In any thread."""
        return {reason: count for reason, count in dict(self._excluded_documents).items() if count}

    @property
    def excluded_example(self) -> bytes:
        """One of the files that wait because of an exclusion."""
        return next(iter(self._excluded), b"")

    @property
    def waiting(self) -> int:
        """Documents that wait."""
        return self.missed + sum(self.excluded.values())

    def confirm(self) -> None:
        """The next whole scan may forget what it does not find."""
        self._confirmed = True

    def take_back(self) -> None:
        """What was confirmed is not to be scanned: the folder is away."""
        self._confirmed = False

    def found(self, path: bytes) -> None:
        """The file is there, or its removal was told by an event: it does not wait any more."""
        self._held.discard(path)
        if path in self._excluded:
            reason, documents = self._excluded.pop(path)
            self._excluded_documents[reason] -= documents

    def forgettable(
        self, missing: list[bytes], elsewhere: Iterable[object], excluded: Mapping[bytes, str], *, whole: bool
    ) -> list[bytes]:
        """Those of `missing` that may be forgotten. `elsewhere`: stamps of files that are new, which may be missing ones that
        moved. `excluded`: those of `missing` that a new default exclusion leaves out. `whole`: the scan was of the whole
        folder."""
        if whole:
            self._held.clear()
            self._excluded.clear()
            self._excluded_documents.clear()
        confirmed, self._confirmed = whole and self._confirmed, self._confirmed and not whole
        if not self._enabled or confirmed or not missing:
            return missing
        for path, reason in excluded.items():
            if path not in self._excluded:
                self._excluded[path] = reason, self._documents(path)
                self._excluded_documents[reason] += self._excluded[path][1]
        missing = [path for path in missing if path not in self._excluded]
        stamps = set(elsewhere)
        gone = [path for path in missing if path not in self._vanished and self._counts(path, stamps)]
        candidates = self._held.union(gone)
        lost = sum(self._documents(path) for path in candidates)
        known = sum(self._documents(path) for path in self._ledger if self._counts(path))
        if known < GUARDED_DOCUMENTS or 2 * lost <= known:
            return missing
        self._held, self.lost, self.known = candidates, lost, known
        return [path for path in missing if path not in candidates]

    def _counts(self, path: bytes, moved: Iterable[object] = ()) -> bool:
        entry = self._ledger.get(path)
        return entry is not None and entry.refused is None and entry.fingerprint.stamp not in moved
