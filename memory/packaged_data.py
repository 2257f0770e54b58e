"""Locates data files of other packages installed with hippod: the encoder's model and word lists."""

from importlib.util import find_spec
from pathlib import Path

FOLDER = "hippod_data"
"""Name of the data folder next to hippod's own packages; `systemd/package/wheel_backend.py` puts it there."""


def packaged_data(name: str) -> Path:
    """Returns the folder `name` of the packaged data. Raises `FileNotFoundError` if it is not installed; the message tells what
    to do."""
    spec = find_spec(FOLDER)
    for place in (spec and spec.submodule_search_locations) or ():
        if (folder := Path(place) / name).is_dir():
            return folder
    raise FileNotFoundError(
        f"{FOLDER}/{name} is not installed next to hippod's packages; run `make install` in a checkout, or install hippod's "
        "wheel or package again."
    )
