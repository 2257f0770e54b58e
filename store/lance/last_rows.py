"""Finds the current row of each key: in every table, a later row replaces an earlier row with the same key."""

from typing import Any

import numpy as np
import pyarrow.compute as pc


def last_of_each(table: Any, key: str) -> Any:
    """Returns the last row for each value of the column `key`, in commit order."""
    table = table.sort_by("commit")
    return table.take(last_rows(codes_of(table[key])))


def codes_of(texts: Any) -> Any:
    """Returns an integer for each text; equal texts have equal integers."""
    return pc.dictionary_encode(texts).combine_chunks().indices.to_numpy()


def last_rows(keys: Any) -> Any:
    """Returns the index of the last occurrence of each key, ascending."""
    _, from_the_end = np.unique(keys[::-1], return_index=True)
    return np.sort(len(keys) - 1 - from_the_end)
