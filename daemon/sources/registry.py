"""The kinds of sources. A new kind is listed here; all its other code is in its own module."""

from collections.abc import Callable, Iterable
from typing import Any

from daemon.pipeline.ownership import Owners
from daemon.sources.base import SourceKind
from daemon.sources.folder import FOLDER
from daemon.sources.kafka.declaration import KAFKA

SOURCE_KINDS: tuple[SourceKind[Any], ...] = (FOLDER, KAFKA)
"""The kinds, in the order of `config.toml`."""


def owners(tables: Callable[[SourceKind[Any]], Iterable[Any]]) -> Owners:
    """Returns the owners of documents. `tables` returns the configured tables of a kind (`Config.tables`)."""
    return Owners(claim for kind in SOURCE_KINDS for table in tables(kind) for claim in kind.claims(table))
