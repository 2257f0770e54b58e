"""What may be said of an exception without its message: where it arose, and what the system refused.

Messages may quote what was being read; files, lines and functions of a program, and the system's own words, do not.
"""

import os
import re
import traceback
from pathlib import Path

ROOMS = ("daemon", "consumers", "memory", "store", "cli")
_ROOT = Path(__file__).resolve().parents[2]
_OS_ERROR = re.compile(r"\(os error (\d{1,4})\)")
"""How LanceDB passes on what the system said: in the text of a RuntimeError or an OSError that has no number."""


def raised_at(error: BaseException) -> str:
    """Where it was raised, and from which place of ours if that is elsewhere; empty for one that was not raised."""
    frames = [(_short(frame.filename), frame) for frame in traceback.extract_tb(error.__traceback__)]
    if not frames:
        return ""
    at = [frames[-1]]
    ours = [each for each in frames if each[0].split("/", 1)[0] in ROOMS]
    if ours and ours[-1] is not at[0]:
        at.append(ours[-1])
    return ", from ".join(f"{name}:{frame.lineno} in {frame.name}" for name, frame in at)


def system_error(error: BaseException) -> str | None:
    """What the operating system refused ("No space left on device"), None for an exception of another kind."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    if isinstance(error, OSError | RuntimeError):
        found = _OS_ERROR.search(str(error))
        if found is not None:
            return os.strerror(int(found[1]))
        if "no space left" in str(error).lower():
            return "No space left on device"
    return None


def _short(file: str) -> str:
    """The path from the project's root, or the package's folder and the file."""
    path = Path(file)
    if path.is_relative_to(_ROOT) and (inside := path.relative_to(_ROOT)).parts[0] in ROOMS:
        return inside.as_posix()
    return "/".join(path.parts[-2:])
