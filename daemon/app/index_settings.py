"""Settings that shape the index and that the store keeps: what happens if they have changed since the last start.

The files of followed folders are cut anew after a change of `[passages]`. `daemon.config.store_encoder` has the settings of
`[encoder]`, and the store itself those of `[graph]`.
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
    """Marks the followed files as not read, in one commit, if `split` is not what they were cut with."""
    if split == split_of_store(store.positions):
        return
    files = mark_unread(store, store.positions, passages_position(split))
    log.info("passages_cut_anew", files=files, max_tokens=split.max_tokens, min_tokens=split.min_tokens)


def mark_unread(store: Store, files: Iterable[str], settings: Mapping[str, Any]) -> int:
    """Marks `files` as not read, and keeps `settings`, in one commit. Returns how many of them are followed files."""
    found = {
        key: {**position, "reader": None}
        for key in files
        if isinstance(position := store.positions.get(key), Mapping) and "reader" in position
    }
    store.commit(Batch(positions={**found, **settings}))
    return len(found)


def keep_passage_prefix(store: Store, encoder: Encoder) -> None:
    """Keeps the prefix of the texts in a store without one, for `daemon.config.store_encoder`."""
    if (prefix := encoder.passage_prefix) is not None and store.positions.get(PREFIX_KEY) is None:
        store.commit(Batch(positions={PREFIX_KEY: prefix}))
