"""Makes hippod's files accessible to its user only: mode 0600, folders 0700, whatever umask it was started with.

The process's umask applies to every writer (Lance, pyarrow, tempfile, the parsing processes). The socket and the folders above
it get their modes explicitly, because other users must reach the socket.
"""

import os
from contextlib import suppress
from pathlib import Path

PRIVATE_UMASK = 0o077
_SHARED_MODE = 0o755

_inherited_umask = 0
"""The umask that the process was started with."""


def use_private_umask() -> None:
    """Sets the umask so that this process and its children create files that only their user can read."""
    global _inherited_umask
    _inherited_umask = os.umask(PRIVATE_UMASK)


def make_shared_folder(folder: Path) -> None:
    """Creates a folder, with parents, that others may access: 0755 minus the inherited umask. Raises OSError."""
    if folder.is_dir():
        return
    make_shared_folder(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(_SHARED_MODE & ~_inherited_umask)
