"""Rebuilds the live index after purges have left many unused rows in it.

A purged row keeps its place in the index, so the index only grows; no checkpoint is written once a quarter of it was purged. A
fresh index is loaded from the tables as of one commit, concurrently with later commits. These are then applied to it, as at a
start, while the next commit waits.
"""

from store.change.load import append_contents, replay
from store.checkpoint.writer import MAX_PURGED_SHARE
from store.index.live_index import KINDS, LiveIndex
from store.lance.tables import TableView

REBUILD_MIN_PURGED_ROWS = 2_000
"""Purged rows, some megabytes, below which a rebuild is not worth its work."""


def needs_rebuild(index: LiveIndex) -> bool:
    """Whether enough rows of the index were purged."""
    return index.purged_rows > max(REBUILD_MIN_PURGED_ROWS, MAX_PURGED_SHARE * sum(index.ids[name].n for name in KINDS))


def catch_up(index: LiveIndex, old: LiveIndex, tables: TableView, commit: int) -> None:
    """Applies the commits after `commit`. The caller holds the write lock."""
    append_contents(index, tables, dict(index.next_id))
    index.sketch_phrases()
    replay(index, tables, commit)
    index.keep_numbering_of(old)
