"""Finds what the present user may access of a path. hippod's directories are closed to other users, as they should be."""

import os
from pathlib import Path


def nearest(path: Path) -> Path:
    """Returns the resolved path if it exists for this user, otherwise the nearest directory above it that does."""
    place = Path(os.path.realpath(path))
    # os.path.exists treats a path in a closed directory as absent; Path.exists would raise.
    return next(each for each in (place, *place.parents) if os.path.exists(each))  # noqa: PTH110


def closed(path: Path) -> Path | None:
    """Returns the directory, `path` or one above it, that this user may not enter; None if there is none."""
    place = nearest(path)
    return place if place.is_dir() and not os.access(place, os.X_OK, effective_ids=True) else None
