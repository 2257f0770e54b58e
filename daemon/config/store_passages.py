"""The settings of `[passages]` with which the followed files of a store were cut."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from consumers.splitting import SplitSettings

PASSAGES_KEY = "settings/passages"
"""The position that holds the settings. A store without it was cut with the defaults."""


def split_of_store(positions: Mapping[str, Any]) -> SplitSettings:
    """Returns the settings according to the store's `positions`."""
    return SplitSettings(**positions.get(PASSAGES_KEY, {}))


def passages_position(split: SplitSettings) -> dict[str, Any]:
    """Returns the position that says that the files are cut with `split`."""
    return {PASSAGES_KEY: asdict(split)}
