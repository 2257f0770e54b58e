"""Restricts the store's files to its user: mode 0600 for files, 0700 for folders. Corrects files of earlier releases too.

New files get these modes from the process's umask (`daemon.config_types.private_umask`).
"""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

_OPEN = 0o077
"""Permission bits of the group and of other users."""

_OWN = re.compile(
    r"lock|log|head|checksums|positions\.key|restoring|reencode|inbox|inbox\.backup|sessions|torn|snapshot[-.].+|[a-z]+\.lance|openie\..+|costs\..+|backup\..+|before-restore-.+|upgrade-backup[-.].+|"
    r"restored\.new|stacks-of-abort\.txt|scratch-.+"
)
"""Names of hippod's own files in the store's folder. Other files do not belong to hippod and stay unchanged."""

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(slots=True)
class Tightened:
    """Number of files and folders whose permissions were restricted (`closed`), and of those that could not be restricted
    because another user owns them (`refused`)."""

    closed: int = 0
    refused: int = 0


def tighten(store: Path) -> Tightened:
    """Removes the permissions of the group and of others from the store's folder and from hippod's files in it.

    Does not follow symbolic links. Takes O(files) time, but changes only files with such permissions.
    """
    found = Tightened()
    _close(store, None, store.stat(), found, follow=True)
    with os.scandir(store) as entries:
        own = [entry.name for entry in entries if _OWN.fullmatch(entry.name)]
    for name in own:
        for _, folders, files, descriptor in os.fwalk(store / name, follow_symlinks=False):
            for each in (*folders, *files):
                _close_entry(each, descriptor, found)
        _close_entry(store / name, None, found)
    return found


def _close_entry(path: Path | str, folder: int | None, found: Tightened) -> None:
    try:
        status = os.stat(path, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        _close(path, folder, status, found)


def _close(
    path: Path | str, folder: int | None, status: os.stat_result, found: Tightened, *, follow: bool = False
) -> None:
    mode = stat.S_IMODE(status.st_mode)
    if not mode & _OPEN:
        return
    if status.st_uid != os.geteuid():
        found.refused += 1
        return
    try:
        descriptor = os.open(path, _FILE & ~os.O_NOFOLLOW if follow else _FILE, dir_fd=folder)
    except OSError:
        found.refused += 1
        return
    try:
        os.fchmod(descriptor, mode & ~_OPEN)
        found.closed += 1
    except OSError:
        found.refused += 1
    finally:
        os.close(descriptor)
