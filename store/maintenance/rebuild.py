"""A fresh image in the place of one that is, to a good part, rows that purging took from the tables.

Rows keep their places in an image, purged or not, so it only ever grows: memory that nobody has a use for, and no snapshot
for the next start once a quarter of it is gone. A fresh one is loaded from the tables as of a commit, beside the commits that
follow it; these are applied to it while the next has to wait, as they are at a start.
"""

from store.checkpoint.checkpoint import KINDS, MOST_FORGOTTEN
from store.checkpoint.recovery import replay
from store.index.load import append_contents, load_image
from store.index.state import Image
from store.lance.tables import Tables
from store.log.plan import SynonymRule

LEAST = 2_000
"""Rows, some megabytes, for which it is not worth the while."""


def worn(image: Image) -> bool:
    """Whether enough of the image has been purged."""
    return image.forgotten > max(LEAST, MOST_FORGOTTEN * sum(image.ids[name].n for name in KINDS))


def fresh(beside: Tables, dim: int, rule: SynonymRule) -> Image:
    """The image of what `beside` holds: handles of their own, opened at the commit, which nobody moves on."""
    return load_image(beside, dim, rule.cap)


def catch_up(image: Image, old: Image, tables: Tables, rule: SynonymRule, commit: int) -> None:
    """Applies the commits after `commit`. For who holds the write lock."""
    append_contents(image, tables, dict(image.next_id))
    later = tables.read_where("documents", None, f"commit > {commit}").sort_by("commit").to_pylist()
    replay(image, commit, tables, rule, later)
    image.number_after(old)
