"""Compares the exports of two memories: kind by kind, and line by line if a kind differs."""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from operator import eq

import numpy as np

from store.export.canonical_order import EDGE_TYPES, CanonicalOrder, Rows
from store.export.json_lines import export_lines


def compare_exports(mine: CanonicalOrder, theirs: CanonicalOrder, on_lines: Callable[[int], None]) -> Iterator[str]:
    """Yields a sentence for each line of `mine` (the memory) that differs in `theirs` (built from the tables). `on_lines`
    is called with the number of equal lines so far."""
    done = 0
    for lines, same in _kinds(mine, theirs):
        if not same:
            yield from _different_lines(mine, theirs)
            return
        done += lines
        on_lines(done)


def _kinds(mine: CanonicalOrder, theirs: CanonicalOrder) -> Iterator[tuple[int, bool]]:
    """Yields, for each kind of line, the number of lines in `mine` and whether `theirs` has the same ones. Does not format
    the lines."""
    one, other = mine.snapshot, theirs.snapshot
    yield len(mine.passages), _same(one.passage, mine.passages, other.passage, theirs.passages)
    yield len(mine.phrases), _same(one.phrase, mine.phrases, other.phrase, theirs.phrases)
    ends = mine.triple_ends(mine.triples), theirs.triple_ends(theirs.triples)
    predicates = _same(one.predicate, mine.triples, other.predicate, theirs.triples)
    yield len(mine.triples), predicates and np.array_equal(*ends)
    for kind in EDGE_TYPES:
        edges, edges_by_tables = mine.edges(kind), theirs.edges(kind)
        yield len(edges[0]), all(np.array_equal(*pair) for pair in zip(edges, edges_by_tables, strict=True))


def _same(one: Callable[[int], object], rows: Rows, other: Callable[[int], object], other_rows: Rows) -> bool:
    if len(rows) != len(other_rows):
        return False
    return all(map(eq, map(one, rows.tolist()), map(other, other_rows.tolist())))


def _different_lines(mine: CanonicalOrder, theirs: CanonicalOrder) -> Iterator[str]:
    for line, by_tables in zip_longest(export_lines(mine.snapshot), export_lines(theirs.snapshot)):
        if line != by_tables:
            yield f"in memory {line}, by the tables {by_tables}"
