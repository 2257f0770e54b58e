"""Derives counts and edges from the triples of passages, in the same way for a commit, a start and a scope.

A passage has a context edge to each phrase in its triples. A triple connects its two phrases once for each passage that states
it: with a relation edge if it is a statement, else with a mention edge.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.columns.row_lists import ListArrays
from store.rows import Rows64

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]
"""(row, column, weight) of the entries of a matrix, as three arrays; entries at the same position are summed."""
CountChange = tuple[NDArray[Any], NDArray[Any]]
"""Distinct rows, and the change of each row's count."""

NO_ENTRIES: Entries = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
NO_CHANGE: CountChange = (np.empty(0, np.int64), np.empty(0, np.int64))
_LOW = (1 << 32) - 1


@dataclass(slots=True)
class TripleChange:
    """`edges`: the entries to add to the matrices `incidence`, `relation`, `mention` and `context`. `triples` and `phrases`:
    the changes of the number of passages that contain them."""

    edges: dict[str, Entries] = field(default_factory=dict)
    triples: CountChange = NO_CHANGE
    phrases: CountChange = NO_CHANGE


def triple_change(
    passages: Rows64,
    before: ListArrays,
    after: ListArrays,
    ends: Callable[[Any], NDArray[Any]],
    is_statement: Callable[[Any], NDArray[np.bool_]],
) -> TripleChange:
    """Returns the change when the triples of `passages` (rows, ascending) change from `before` to `after`.

    `ends` returns the phrase rows of triples, shape (k, 2); `is_statement` the mask of the triples that are statements.
    """
    owners, triples, signs = _difference(_pairs(before, before.rows), _pairs(after, after.rows))
    holders, phrases, added = _difference(_phrases(before, ends), _phrases(after, ends))
    edges = phrase_edges(ends(triples), is_statement(triples), signs)
    edges |= {"incidence": (passages[owners], triples, signs), "context": (passages[holders], phrases, added)}
    return TripleChange(edges, count_change(triples, signs), count_change(phrases, added))


def phrase_edges(
    ends: NDArray[Any], is_statement: NDArray[np.bool_], weights: NDArray[np.float64]
) -> dict[str, Entries]:
    """Returns the entries of `relation` and `mention`, in both directions, for triples with these `ends`."""
    found = {}
    apart = ends[:, 0] != ends[:, 1]
    for name, of_kind in (("relation", apart & is_statement), ("mention", apart & ~is_statement)):
        (ones, others), added = ends[of_kind].T, weights[of_kind]
        found[name] = np.concatenate([ones, others]), np.concatenate([others, ones]), np.concatenate([added, added])
    return found


def joined(parts: Sequence[Entries]) -> Entries:
    """Returns the entries of all `parts`; at least one part is required."""
    rows, columns, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    return rows, columns, weights


def count_change(rows: NDArray[Any], changes: NDArray[Any]) -> CountChange:
    """Returns the sum of `changes` for each distinct row, without rows whose sum is zero."""
    each, places = np.unique(rows, return_inverse=True)
    sums = np.bincount(places, weights=changes, minlength=len(each)).astype(np.int64)
    return each[sums != 0], sums[sums != 0]


def _pairs(lists: ListArrays, items: NDArray[Any]) -> Rows64:
    pairs: Rows64 = lists.owners().astype(np.int64) << 32 | items
    return pairs


def _phrases(lists: ListArrays, ends: Callable[[Any], NDArray[Any]]) -> Rows64:
    """Returns the distinct pairs (list, phrase), each encoded as one number, sorted."""
    phrases = ends(lists.rows)
    return np.unique(np.concatenate([_pairs(lists, phrases[:, 0]), _pairs(lists, phrases[:, 1])]))


def _difference(before: Rows64, after: Rows64) -> tuple[Rows64, Rows64, NDArray[np.float64]]:
    """Returns the pairs in only one of the arguments, and their signs: -1 for pairs in `before`, 1 for pairs in `after`."""
    gone = np.setdiff1d(before, after, assume_unique=True)
    came = np.setdiff1d(after, before, assume_unique=True)
    pairs = np.concatenate([gone, came])
    return pairs >> 32, pairs & _LOW, np.repeat([-1.0, 1.0], [len(gone), len(came)])
