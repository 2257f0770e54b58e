"""One hippod a store: an advisory lock that names the process which holds it."""

import fcntl
import os
from pathlib import Path
from typing import Self

from store.errors import StoreLocked, StoreRefused, refusal


def lock_owner(folder: Path) -> int | None:
    """The process that has the store open, None where nobody has, or it cannot be told. Takes no lock to find out."""
    try:
        found = (folder / "lock").stat()
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
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
    """Holds `<store>/lock` for as long as the process lives; the kernel lets go of it however the process ends."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        refused: OSError | None = None
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            refused = error
            self._fd = self._open_for_reading(folder, error)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.read(self._fd, 32).decode("ascii", "replace").strip()
            os.close(self._fd)
            pid = int(said) if said.isdigit() else None
            lock_owner = f"hippod with pid {pid}" if pid else "another process"
            raise StoreLocked(
                f"the store {folder} is open in {lock_owner}; stop that one first, or give this one another [store] path",
                pid,
            ) from None
        if refused is not None:
            self.release()
            raise _not_written(folder, refused) from refused
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def _open_for_reading(self, folder: Path, refused: OSError) -> int:
        """Where nothing can be written, the lock still says who has it: another unit's store is read-only for this one."""
        try:
            return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            raise _not_written(folder, refused) from refused

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
