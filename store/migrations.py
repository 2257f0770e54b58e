"""How a store that an older hippod made becomes one of this version's.

A store says its format in its first commit, and again in the commit of each migration. Opening an older store makes the
steps that lie between, each a commit of its own: a crash in the middle of one leaves the store as it was before that step,
by the same rule that undoes any other commit that was not finished. Nothing is made backwards; a newer store is refused.

When the format changes, in one commit: `store.tables.FORMAT` goes up by one, a step from the old number goes into `STEPS`,
the changelog names it, and `tests/store/released/make.py` has written a store with the *last release* before, which
`tests/store/test_migrations.py` opens from then on. A table may gain columns in a step (`add_columns`) or be written anew;
`commits` keeps its columns for ever, as it is read before any step: what is new there goes into `facts`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from store.tables import Tables

Step = Callable[[Tables], None]
"""Changes the tables of one format into those of the next. It may raise what Lance raises; the step is undone then."""

STEPS: dict[int, Step] = {}
"""The step from each earlier format to the one after it. Format 1 is the first."""


def format_of(facts: Iterable[Mapping[str, Any]]) -> int:
    """The format of a store from the facts of its commits."""
    return max((int(each["format"]) for each in facts if "format" in each), default=1)
