"""Describes an exception by the code that raised it and the system error; omits its message, which may quote a document."""

import os
import re
import traceback
from pathlib import Path

ROOMS = ("daemon", "consumers", "memory", "store", "cli")
_ROOT = Path(__file__).resolve().parents[2]
_OS_ERROR = re.compile(r"\(os error (\d{1,4})\)")
"""Matches the system's error number in a message of LanceDB, whose exceptions have no `errno`."""


def raised_at(error: BaseException) -> str:
    """Returns where the exception was raised, with hippod's innermost frame if that is another place; "" if it was not
    raised."""
    frames = [(short_path(frame.filename), frame) for frame in traceback.extract_tb(error.__traceback__)]
    if not frames:
        return ""
    at = [frames[-1]]
    own_frames = [each for each in frames if each[0].split("/", 1)[0] in ROOMS]
    if own_frames and own_frames[-1] is not at[0]:
        at.append(own_frames[-1])
    return ", from ".join(f"{name}:{frame.lineno} in {frame.name}" for name, frame in at)


def system_error(error: BaseException) -> str | None:
    """Returns the operating system's text for the error, such as "No space left on device"; None for other exceptions."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    if isinstance(error, OSError | RuntimeError):
        found = _OS_ERROR.search(str(error))
        if found is not None:
            return os.strerror(int(found[1]))
        if "no space left" in str(error).lower():
            return "No space left on device"
    return None


def short_path(file: str) -> str:
    """Returns the path relative to the project's root; for other files, the last folder and the file's name."""
    path = Path(file)
    if path.is_relative_to(_ROOT) and (inside := path.relative_to(_ROOT)).parts[0] in ROOMS:
        return inside.as_posix()
    return "/".join(path.parts[-2:])
