"""Flags of which a few are changed read like an array in which they are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from store.index.synonyms.changed_flags import ChangedFlags, OneWithoutOther, among, unchanged

ROWS = 20


@given(
    st.lists(st.booleans(), max_size=ROWS),
    st.dictionaries(st.integers(0, ROWS - 1), st.booleans()),
    st.lists(st.integers(0, ROWS - 1)),
    st.tuples(st.integers(0, ROWS), st.integers(0, ROWS)).map(sorted),
)
def test_they_read_like_an_array(before, changes, asked, ends):
    whole = np.zeros(ROWS, np.bool_)
    whole[: len(before)] = before
    first = whole.copy()
    rows = np.array(sorted(changes), np.int64)
    whole[rows] = [changes[row] for row in rows.tolist()]
    known = np.array(before, np.bool_)
    flags = ChangedFlags(known, rows, whole[rows])
    both = OneWithoutOther(flags, unchanged(known))
    asked = np.array(asked, np.int64)
    for part in (asked, slice(*ends)):
        assert flags[part].tolist() == whole[part].tolist()
        assert both[part].tolist() == (whole & ~first)[part].tolist()
    assert among(asked, rows).tolist() == [row in changes for row in asked.tolist()]
