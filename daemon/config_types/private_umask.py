"""What hippod writes is its user's alone: mode 0600, folders 0700, whatever the umask was that it was started with.

The process's umask is the one place that everything obeys which makes files: Lance, pyarrow, tempfile, and the processes that
parse. What others must reach, the socket and the folders above it, gets its mode explicitly.
"""

import os
from contextlib import suppress
from pathlib import Path

PRIVATE_UMASK = 0o077
_SHARED_MODE = 0o755

_inherited_umask = 0
"""The umask that the process was started with."""


def use_private_umask() -> None:
    """From now on this process, and those that it starts, make files that only their user can read."""
    global _inherited_umask
    _inherited_umask = os.umask(PRIVATE_UMASK)


def make_shared_folder(folder: Path) -> None:
    """Makes a folder that others may have to reach, and those above it: 0755 less the umask of the start. Raises OSError."""
    if folder.is_dir():
        return
    make_shared_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(_SHARED_MODE & ~_inherited_umask)
