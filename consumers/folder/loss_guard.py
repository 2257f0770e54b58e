"""If a scan would remove documents by mistake, keeps them until an operator confirms the removal.

There are two cases. First, more than half of a folder's documents are missing: a drive may be unmounted, or a path or pattern
may be wrong. Second, after an upgrade of hippod, a new default exclusion matches documents that are in the memory. Removals
reported by inotify events are not guarded. The guard stores nothing: the next scan, also after a restart, finds the same files
missing.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from consumers.folder.due_paths import PendingRemovals
from consumers.folder.ledger import Ledger

GUARDED_DOCUMENTS = 5
"""A folder with fewer documents is not guarded, because reading them again is cheap."""


class LossGuard:
    """Decides which missing files may be removed. For one thread, except `confirm`, which any thread may call."""

    def __init__(
        self, ledger: Ledger, vanished: PendingRemovals, documents: Callable[[bytes], int], *, enabled: bool
    ) -> None:
        """`vanished` holds paths that are already known to be gone. `documents(path)` returns the number of documents in
        the file."""
        self._ledger = ledger
        self._vanished = vanished
        self._documents = documents
        self._enabled = enabled
        self._confirmed = False
        self._missing: set[bytes] = set()
        self._excluded: dict[bytes, tuple[str, int]] = {}
        """Files that wait because of an exclusion, by path: (reason of the exclusion, number of documents in the file)."""
        self._excluded_documents: Counter[str] = Counter()
        self._missing_documents = 0
        self.known = 0
        """Number of documents in the folder at the last scan that missed more than half of them."""

    @property
    def missing(self) -> int:
        """Number of documents that wait for confirmation because a scan did not find them."""
        return self._missing_documents if self._missing else 0

    @property
    def excluded(self) -> dict[str, int]:
        """Number of documents that wait for confirmation because of a new default exclusion, by the exclusion's reason. Any
        thread may read it."""
        return {reason: count for reason, count in dict(self._excluded_documents).items() if count}

    @property
    def unconfirmed(self) -> int:
        """Number of all documents that wait for confirmation."""
        return self.missing + sum(self.excluded.values())

    def reasons(self, source: str) -> list[str]:
        """Returns clauses for `status`: which documents of the folder `source` wait for confirmation, and what to do."""
        reasons = []
        if self.missing:
            reasons.append(
                f"{self.missing:,} of {self.known:,} documents are missing; they are kept until `hippoctl confirm {source}` "
                "confirms that they are gone; otherwise mount the drive, or correct path, include and exclude"
            )
        if excluded := self.excluded:
            counts = ", ".join(f"{reason} {count:,}" for reason, count in sorted(excluded.items()))
            example = next(iter(self._excluded), b"")
            reasons.append(
                f"new default exclusions leave out documents that are in the memory ({counts}), such as "
                f"{os.fsdecode(example)!r}; they are kept until `hippoctl confirm {source}` forgets them; to follow them, "
                "add a `!` pattern to exclude"
            )
        return reasons

    def confirm(self) -> None:
        """Lets the next scan of the whole folder remove all files that it does not find."""
        self._confirmed = True

    def withdraw_confirmation(self) -> None:
        """Cancels the confirmation because the folder is missing."""
        self._confirmed = False

    def found(self, path: bytes) -> None:
        """Stops guarding a file: it exists, or an event reported its removal."""
        self._missing.discard(path)
        if path in self._excluded:
            reason, documents = self._excluded.pop(path)
            self._excluded_documents[reason] -= documents

    def forgettable(
        self, missing: list[bytes], elsewhere: Iterable[object], excluded: Mapping[bytes, str], *, whole: bool
    ) -> list[bytes]:
        """Returns the paths among `missing` that may be removed.

        `elsewhere` holds the stamps of new files: a missing file with the same stamp may have moved there. `excluded` maps the
        paths that a new default exclusion leaves out to the exclusion's reason. `whole`: the scan covered the whole folder.
        """
        if whole:
            self._missing.clear()
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
        candidates = self._missing.union(gone)
        documents = sum(self._documents(path) for path in candidates)
        known = sum(self._documents(path) for path in self._ledger if self._counts(path))
        if known < GUARDED_DOCUMENTS or 2 * documents <= known:
            return missing
        self._missing, self._missing_documents, self.known = candidates, documents, known
        return [path for path in missing if path not in candidates]

    def _counts(self, path: bytes, moved: Iterable[object] = ()) -> bool:
        entry = self._ledger.get(path)
        return entry is not None and entry.refused is None and entry.fingerprint.stamp not in moved
