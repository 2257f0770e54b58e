"""Refusals of paths that cannot be opened or are not regular files. The reason tells users what to do."""

import errno
import os
import stat
from typing import NamedTuple

from consumers.failure_codes import FailureCode

_SPECIAL_FILES = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class FileRefusal(NamedTuple):
    """`may_recover`: a retry may succeed without a change of the configuration."""

    reason: str
    code: FailureCode
    may_recover: bool = False


def refusal_of_error(error: OSError, what: str = "file") -> FileRefusal:
    """Returns the refusal for an error of the operating system. `what` is "file", "directory" or "folder"."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            reason = f"no permission to read the {what}; give hippod's user read access to it and to the folders above"
            return FileRefusal(reason, FailureCode.PERMISSION, may_recover=True)
        case errno.ENOENT | errno.ENOTDIR:
            reason = f"the {what} is not there any more, or a link replaced a folder above it"
            return FileRefusal(reason, FailureCode.GONE, may_recover=True)
        case errno.EXDEV:
            return FileRefusal("it does not lie in the followed folder", FailureCode.LINK)
        case errno.ELOOP:
            reason = (
                "a symbolic link, or links that lead in a circle; set follow_symlinks, remove the circle, or exclude it"
            )
            return FileRefusal(reason, FailureCode.LINK)
        case errno.ENXIO | errno.ENODEV:
            return refusal_of_special_file(stat.S_IFSOCK)
        case errno.ENAMETOOLONG:
            reason = "its path is longer than the system allows; move it up or shorten the names above it"
            return FileRefusal(reason, FailureCode.UNREADABLE)
        case number:
            reason = f"the {what} could not be read ({os.strerror(number or 0)}); check the drive it is on"
            return FileRefusal(reason, FailureCode.UNREADABLE, may_recover=True)


def refusal_of_special_file(mode: int) -> FileRefusal:
    """Returns the refusal of a file that is not a regular file. `mode` is its `st_mode`."""
    kind = next((name for test, name in _SPECIAL_FILES if test(mode)), "something special")
    return FileRefusal(f"{kind}, not a regular file; move it elsewhere or exclude it", FailureCode.NOT_A_FILE)
