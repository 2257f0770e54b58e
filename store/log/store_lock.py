"""Ensures that only one hippod opens a store, with advisory locks on the store's folder and on a file in it; also checks that
the locked folder is still at its path."""

import fcntl
import os
from pathlib import Path
from typing import Self

from store.errors import StoreFolderLost, StoreLocked, StoreRefused, refusal

LOCK_FILE = "lock"
"""Name of the file with the pid of the process that has the store open. Earlier releases lock only this file."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def lock_owner(folder: Path) -> int | None:
    """Returns the pid of the process that has the store open; None if there is none or it is unknown. Takes no lock."""
    try:
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for path in (folder, folder / LOCK_FILE):
        try:
            found = path.stat()
        except OSError:
            continue
        place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
        for line in locks:
            words = line.split()
            if len(words) > 5 and words[1] == "FLOCK" and words[5] == place and words[4].isdigit():
                return int(words[4])
    return None


def _not_written(folder: Path, error: OSError) -> StoreRefused:
    return StoreRefused(
        f"the store {folder} cannot be written ({error.strerror}); {refusal(error) or 'see to its folder'}"
    )


class StoreLock:
    """Locks the store's folder and `<store>/lock`. The kernel releases both locks when the process ends.

    The lock on the folder remains effective if the file is deleted. The lock on the file excludes earlier releases. On file
    systems that cannot lock folders (NFS), the lock on the file is the only lock.
    """

    def __init__(self, folder: Path) -> None:
        """Takes both locks. Raises StoreLocked or StoreRefused."""
        self.folder = folder
        self._held: dict[Path, int] = {}
        """Descriptors of the checked folders by path. While one is open, the system does not reuse the folder's inode."""
        self._file = -1
        self._lost: tuple[Path, str] | None = None
        """The folder that was lost during a write, and the reason."""
        try:
            self._lock_folder()
            self._lock_file()
        except BaseException:
            self.release()
            raise

    def _lock_folder(self) -> None:
        try:
            self._held[self.folder] = os.open(self.folder, _FOLDER)
        except OSError as error:
            raise _not_written(self.folder, error) from error
        try:
            fcntl.flock(self._held[self.folder], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._locked() from None
        except OSError:
            pass  # the file system can lock only files

    def _lock_file(self) -> None:
        path, refused = self.folder / LOCK_FILE, None
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            refused = error
            try:
                # Without write access, the lock still shows whether another process has the store open, for example the process
                # of another systemd unit.
                self._file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                raise _not_written(self.folder, refused) from refused
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._locked() from None
        if refused is not None:
            raise _not_written(self.folder, refused) from refused
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def _locked(self) -> StoreLocked:
        try:
            content = (self.folder / LOCK_FILE).read_text("ascii", "replace")[:32].strip()
        except OSError:
            content = ""
        pid = int(content) if content.isdigit() else lock_owner(self.folder)
        owner = f"hippod with pid {pid}" if pid else "another process"
        return StoreLocked(
            f"the store {self.folder} is open in {owner}; stop that process first, or set another [store] path",
            pid,
        )

    def hold(self, folder: Path) -> None:
        """Adds a folder that `check` expects at its path. Raises OSError."""
        if folder not in self._held:
            self._held[folder] = os.open(folder, _FOLDER)

    def check(self) -> None:
        """Raises StoreFolderLost if the store's folder, or another folder added by `hold`, is no longer at its path.
        Thread-safe; takes some microseconds."""
        if self._lost is not None:
            raise StoreFolderLost(*self._lost)
        for path, descriptor in self._held.items():
            try:
                found = path.stat()
            except OSError as error:
                raise StoreFolderLost(path, error.strerror or type(error).__name__) from error
            held = os.fstat(descriptor)
            if (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino):
                raise StoreFolderLost(path, "another folder is in its place")

    def check_written(self) -> None:
        """Calls `check` after a write. If a folder is lost, the target of the write is unknown, so later checks fail too."""
        try:
            self.check()
        except StoreFolderLost as error:
            self._lost = error.folder, f"{error.why}, during a commit; restart hippod"
            raise StoreFolderLost(*self._lost) from error

    def release(self) -> None:
        """Releases the locks and ends all checks."""
        descriptors, self._held, self._file = [*self._held.values(), self._file], {}, -1
        for descriptor in descriptors:
            if descriptor >= 0:
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
