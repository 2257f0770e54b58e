"""Measures how much of the disk files use."""

import os
from contextlib import suppress
from pathlib import Path


def bytes_below(path: Path, ending: str = "") -> int:
    """Returns the bytes of a file, or of all files with that ending below a folder.

    A file that disappears meanwhile, or that this user may not access, does not count.
    """
    # os.path.isfile treats what this user may not access as absent; Path.is_file would raise.
    is_file = os.path.isfile(path)  # noqa: PTH113
    files = [path] if is_file else (Path(top, name) for top, _, names in os.walk(path) for name in names)
    total = 0
    for file in files:
        if file.name.endswith(ending):
            with suppress(OSError):
                total += file.lstat().st_size
    return total
