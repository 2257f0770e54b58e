"""Settings that shape the index and that the store keeps: what happens if they have changed since the last start.

The files of followed folders are cut anew after a change of `[passages]`. Another `[encoder] passage_prefix` is refused,
because vectors of texts with different prefixes cannot be compared.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import structlog

from consumers.splitting import SplitSettings
from memory.types import Encoder, passage_prefix
from store.errors import EncoderMismatch
from store.store import Store
from store.types import Batch

PASSAGES_KEY = "settings/passages"
"""The position that says with which settings the followed files are cut; without it, with the defaults."""
PREFIX_KEY = "settings/passage_prefix"
"""The position that says which prefix the encoder's server gets before a text."""

log = structlog.get_logger()


def cut_files_anew(store: Store, split: SplitSettings) -> None:
    """Marks the followed files as not read, in one commit, if `split` is not what they were cut with."""
    wanted = {"max_tokens": split.max_tokens, "min_tokens": split.min_tokens}
    default = SplitSettings()
    kept = store.positions.get(PASSAGES_KEY, {"max_tokens": default.max_tokens, "min_tokens": default.min_tokens})
    if wanted == kept:
        return
    files = mark_unread(store, store.positions, {PASSAGES_KEY: wanted})
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


def check_passage_prefix(store: Store, encoder: Encoder) -> None:
    """Raises EncoderMismatch if the store's texts were encoded with another prefix. Keeps the prefix of a store without one."""
    wanted, kept = passage_prefix(encoder), store.positions.get(PREFIX_KEY)
    if wanted is None or wanted == kept:
        return
    if kept is not None:
        raise EncoderMismatch(
            f'the texts of the store {store.folder} were encoded with the prefix "{kept}", the configuration asks for '
            f'"{wanted}"; set [encoder] passage_prefix back, or start a new store with another [store] path'
        )
    store.commit(Batch(positions={PREFIX_KEY: wanted}))
