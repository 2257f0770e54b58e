"""Rows of triples by hash equal a dict, after any order of additions, removals and folds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from store.index.append_only_arrays import GrowableArray
from store.index.columns.hashed_rows import TripleKey, TripleRows
from store.index.file_arrays import IN_MEMORY

KEYS = st.tuples(st.integers(0, 3), st.sampled_from(["met", "saw", ""]), st.integers(0, 3))
STEPS = st.lists(st.one_of(KEYS, st.integers(0, 30), st.sampled_from(["fold", "begin", "end"])), max_size=60)


class DictAndRows:
    """A dict and a `TripleRows`, changed in the same way."""

    def __init__(self) -> None:
        self.ends, self.predicates = GrowableArray(np.int32, 2), list[str]()
        self.rows = TripleRows(self.ends, self.predicates, IN_MEMORY)
        self.expected: dict[TripleKey, int] = {}

    def add(self, key: TripleKey) -> None:
        if key not in self.expected:
            self.rows[key] = self.expected[key] = len(self.predicates)
            self.predicates.append(key[1])
            self.ends.extend([(key[0], key[2])])

    def discard(self, row: int) -> None:
        if row < len(self.predicates):
            self.rows.discard([row])
            self.expected = {key: at for key, at in self.expected.items() if at != row}

    def check(self) -> None:
        assert sorted(self.rows.values()) == sorted(self.expected.values())
        assert len(self.rows) == len(self.expected)
        for subject in range(4):
            for predicate in ("met", "saw", ""):
                for object_ in range(-1, 4):
                    key = subject, predicate, object_
                    assert self.rows.get(key) == self.expected.get(key)
                    assert (key in self.rows) == (key in self.expected)


@given(STEPS)
def test_triple_rows_equal_a_dict_also_with_concurrent_folds(steps: list[TripleKey | int | str]) -> None:
    beside, begun = DictAndRows(), None
    for step in steps:
        if isinstance(step, tuple):
            beside.add(step)
        elif isinstance(step, int):
            beside.discard(step)
        elif step == "fold":
            beside.rows.fold()
            begun = None
        elif step == "begin":
            begun = beside.rows.copy()
            begun.fold()
        elif begun is not None:
            beside.rows.swap_in_fold(begun)
            begun = None
    beside.check()


def test_triple_keys_with_equal_hashes_are_distinguished(monkeypatch) -> None:
    monkeypatch.setattr(TripleRows, "hash", lambda _rows, _key: 7)
    beside = DictAndRows()
    for subject in range(3):
        beside.add((subject, "met", 1))
    rows = np.arange(3)
    beside.rows.load((np.full(3, 7, np.uint64), rows.astype(np.int32)))
    beside.rows._later = {}
    beside.check()
    beside.discard(1)
    beside.check()
