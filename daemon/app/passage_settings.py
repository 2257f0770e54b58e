"""After a change of `[passages]`, the files of followed folders are cut anew."""

from collections.abc import Mapping

import structlog

from consumers.splitting import SplitSettings
from store.store import Store
from store.types import Batch

KEY = "settings/passages"
"""The position that says with which settings the followed files are cut; without it, with the defaults."""

log = structlog.get_logger()


def cut_files_anew(store: Store, split: SplitSettings) -> None:
    """Marks the followed files as not read, in one commit, if `split` is not what they were cut with."""
    wanted = {"max_tokens": split.max_tokens, "min_tokens": split.min_tokens}
    default = SplitSettings()
    kept = store.positions.get(KEY, {"max_tokens": default.max_tokens, "min_tokens": default.min_tokens})
    if wanted == kept:
        return
    files = {
        key: {**position, "reader": None}
        for key, position in store.positions.items()
        if isinstance(position, Mapping) and "reader" in position
    }
    store.commit(Batch(positions={**files, KEY: wanted}))
    log.info("passages_cut_anew", files=len(files), max_tokens=split.max_tokens, min_tokens=split.min_tokens)
