"""What can be seen of a path. Who runs the check may be another user than hippod's, to whom hippod's directories are shut:
that is how they should be, and no fault of the check."""

import os
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
