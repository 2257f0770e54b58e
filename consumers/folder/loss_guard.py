"""Keeps a scan from forgetting most of a folder at once: a drive that is mounted empty, a path or a pattern that is wrong.

What one event after the other says to be gone is gone. What a scan alone does not find any more, and is more than half of the
documents, waits until somebody says that it is so. Nothing of this is written down: the next scan, also after a restart,
finds the same.
"""

from collections.abc import Callable, Iterable

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
        self.lost = self.known = 0
        """Documents that wait, and documents of the whole folder, as of the last scan that held any."""

    def __bool__(self) -> bool:
        """Whether anything waits."""
        return bool(self._held)

    def confirm(self) -> None:
        """The next whole scan may forget what it does not find."""
        self._confirmed = True

    def take_back(self) -> None:
        """What was confirmed is not to be scanned: the folder is away."""
        self._confirmed = False

    def found(self, path: bytes) -> None:
        """The file is there, or its removal was told by an event: it does not wait any more."""
        self._held.discard(path)

    def forgettable(self, missing: list[bytes], elsewhere: Iterable[object], *, whole: bool) -> list[bytes]:
        """Those of `missing` that may be forgotten. `elsewhere`: stamps of files that are new, which may be missing ones that
        moved. `whole`: the scan was of the whole folder."""
        if whole:
            self._held.clear()
        confirmed, self._confirmed = whole and self._confirmed, self._confirmed and not whole
        if not self._enabled or confirmed or not missing:
            return missing
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
