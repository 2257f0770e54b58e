"""What can be seen of a path. Who runs the check may be another user than hippod's, to whom hippod's directories are shut:
that is how they should be, and no fault of the check."""

import os
from contextlib import suppress
from pathlib import Path


def nearest(path: Path) -> Path:
    """Where the path leads, or the nearest directory above that can be seen."""
    place = Path(os.path.realpath(path))
    # os.path.exists: what a closed directory hides counts as absent, where Path.exists would raise.
    return next(each for each in (place, *place.parents) if os.path.exists(each))  # noqa: PTH110


def closed(path: Path) -> Path | None:
    """The directory on the way to what is in `path`, or `path` itself, that this user may not look into."""
    place = nearest(path)
    return place if place.is_dir() and not os.access(place, os.X_OK, effective_ids=True) else None


def bytes_below(folder: Path, ending: str = "") -> int:
    """Of all files with that ending. What goes while it is counted, or cannot be seen, counts nothing."""
    total = 0
    for top, _, names in os.walk(folder):
        for name in names:
            if name.endswith(ending):
                with suppress(OSError):
                    total += os.lstat(os.path.join(top, name)).st_size  # noqa: PTH118
    return total
