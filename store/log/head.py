"""The file `head` with the number of the last commit. If the log ends before that number, it has lost commits.

The file is not synced: after a power loss it may name an earlier commit, or be empty or missing. It is overwritten in place:
truncating it at each commit made the file system write it to the disk when it was closed, which took longer than the commit.
"""

import os
from contextlib import suppress
from pathlib import Path

HEAD = "head"
"""Name of the file in the store's folder."""


class Head:
    def __init__(self, store: Path) -> None:
        """Reads the file. Raises OSError."""
        self._path = store / HEAD
        self._file: int | None = None
        self.acknowledged = 0
        """The commit that the file names at the opening; 0 if it is missing, empty or damaged."""
        with suppress(FileNotFoundError):
            written = self._path.read_bytes()
            self.acknowledged = int(written) if written.isdigit() else 0

    def write(self, commit: int) -> None:
        """Writes the number of a commit that is on the disk. Raises OSError."""
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.pwrite(self._file, b"%020d" % commit, 0)

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
