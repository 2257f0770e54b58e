"""The kinds of sources. A new one is added here, and nowhere else outside its own file."""

from typing import Any

from daemon.sources.base import SourceKind
from daemon.sources.folder import FOLDER
from daemon.sources.kafka.declaration import KAFKA

SOURCE_KINDS: tuple[SourceKind[Any], ...] = (FOLDER, KAFKA)
"""In the order of `config.toml`."""
