"""Decides whether a folder may read a file with several names (hard links)."""

import os
from dataclasses import dataclass

from consumers.folder.debounce import MAX_UNSETTLED_S
from consumers.folder.ledger import Entry, Ledger
from consumers.folder.tree.file_status import FileStatus
from consumers.folder.tree.hardlinks import LINKED_ELSEWHERE, READ_ELSEWHERE, HardLinks

LINK_GRACE_S, LINK_LOOK_S = 1.0, 0.1
"""Maximum wait of a hard link for other folders to find its other names, and the interval of checks meanwhile."""


@dataclass(frozen=True, slots=True)
class LinkVerdict:
    """The result of a check: the file is refused (`reason`), must wait (`waits`), or may be read. `names` are all names
    of the file."""

    reason: str = ""
    waits: bool = False
    names: frozenset[bytes] = frozenset()


MAY_READ = LinkVerdict()


class LinkCheck:
    """The check for the folder `root`. `links` is shared with other folders."""

    def __init__(self, root: bytes, ledger: Ledger, links: HardLinks, *, follow: bool) -> None:
        self._root = root
        self._ledger = ledger
        self._links = links
        self._follow = follow

    def check(self, path: bytes, found: FileStatus, entry: Entry | None, waited_s: float) -> LinkVerdict:
        """Refuses a file that has a name outside the followed folders, and a file that another folder reads.

        A symbolic link that leads out of the followed folders is refused for the same reason. The file waits if its names are
        not known yet. A file that was already read is kept if it gets a name outside: a backup that hard-links a whole drive
        must not empty the memory. `consumers.openat` checks the names again when the file is opened.
        """
        assert found.stat is not None
        if self._follow or found.stat.st_nlink <= 1:
            return MAY_READ
        names = self._links.names(path, found.stat, self._ledger.with_inode(found.stat.st_ino))
        if len(names) < found.stat.st_nlink:
            if entry is not None and entry.was_read and entry.fingerprint.inode == found.stat.st_ino:
                return MAY_READ
            if (entry is None or entry.refused is None) and self._may_learn_names(waited_s):
                return LinkVerdict(waits=True)
            return LinkVerdict(LINKED_ELSEWHERE.format(count=found.stat.st_nlink))
        self._links.announce(found.stat, names, self._root)
        first = min(names)
        if not first.startswith(self._root.rstrip(b"/") + b"/"):
            return LinkVerdict(READ_ELSEWHERE.format(name=os.fsdecode(first)))
        return LinkVerdict(names=names)

    def is_shared(self, found: FileStatus) -> bool:
        """Whether the file may have names in other followed folders. If so, another folder may have to read it."""
        return self._links.are_shared() and found.stat is not None and found.stat.st_nlink > 1

    def _may_learn_names(self, waited_s: float) -> bool:
        """Whether another folder may still report further names of a file that has waited `waited_s` seconds."""
        if not self._links.are_shared() or waited_s >= MAX_UNSETTLED_S:
            return False
        return waited_s < LINK_GRACE_S or not self._links.are_known(self._root)
