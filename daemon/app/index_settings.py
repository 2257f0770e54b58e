"""Applies changed settings to the content of the store, which records the settings that made it.

After a change of `[passages]`, the files of followed folders are split again. `daemon.config.store_encoder` handles
`[encoder]`, and the store itself handles `[graph]`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import structlog

from consumers.splitting import SplitSettings
from daemon.config.store_encoder import PREFIX_KEY
from daemon.config.store_passages import passages_position, split_of_store
from memory.types import Encoder
from store.store import Store
from store.types import Batch

log = structlog.get_logger()


def cut_files_anew(store: Store, split: SplitSettings) -> None:
    """Marks the followed files to be parsed again, in one commit, if they were not split with the settings `split`."""
    if split == split_of_store(store.positions):
        return
    files = mark_unread(store, store.positions, passages_position(split))
    log.info("passages_cut_anew", files=files, max_tokens=split.max_tokens, min_tokens=split.min_tokens)


def mark_unread(store: Store, files: Iterable[str], settings: Mapping[str, Any]) -> int:
    """Marks `files` to be parsed again, and records `settings`, in one commit. Returns how many of them are followed files."""
    found = {
        key: {**position, "reader": None}
        for key in files
        if isinstance(position := store.positions.get(key), Mapping) and "reader" in position
    }
    store.commit(Batch(positions={**found, **settings}))
    return len(found)


def keep_passage_prefix(store: Store, encoder: Encoder) -> None:
    """Records the prefix of encoded texts in a store that has none, for `daemon.config.store_encoder`."""
    if (prefix := encoder.passage_prefix) is not None and store.positions.get(PREFIX_KEY) is None:
        store.commit(Batch(positions={PREFIX_KEY: prefix}))
