"""Compares the memory in use with one built from the tables. First compares what an export contains, kind by kind, and line by
line if a kind differs; then the other data that queries use, except vectors (`store.verify.compare_tables`).

The two memories number their rows differently, so contents are compared by name.
"""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from operator import eq

import numpy as np

from store.export.canonical_order import EDGE_TYPES, CanonicalOrder, places
from store.export.json_lines import export_lines
from store.index.columns.hashed_rows import text_hash
from store.rows import Rows64
from store.snapshot import DocumentSnapshot, Snapshot


def compare_exports(mine: CanonicalOrder, theirs: CanonicalOrder, on_lines: Callable[[int], None]) -> Iterator[str]:
    """Yields a sentence for each line that differs between `mine` (the memory) and `theirs` (built from the tables). `on_lines`
    is called with the number of lines that were equal so far."""
    done = 0
    for lines, same in _kinds(mine, theirs):
        if not same:
            yield from _different_lines(mine, theirs)
            return
        done += lines
        on_lines(done)


def _kinds(mine: CanonicalOrder, theirs: CanonicalOrder) -> Iterator[tuple[int, bool]]:
    """Yields, for each kind of line, the number of lines in `mine`, and whether `theirs` has the same lines. Compares the lines
    without formatting them."""
    one, other = mine.snapshot, theirs.snapshot
    yield len(mine.passages), _same(one.passage, mine.passages, other.passage, theirs.passages)
    yield len(mine.phrases), _same(one.phrase, mine.phrases, other.phrase, theirs.phrases)
    ends = mine.triple_ends(mine.triples), theirs.triple_ends(theirs.triples)
    predicates = _same(one.predicate, mine.triples, other.predicate, theirs.triples)
    yield len(mine.triples), predicates and np.array_equal(*ends)
    for kind in EDGE_TYPES:
        edges, edges_by_tables = mine.edges(kind), theirs.edges(kind)
        yield len(edges[0]), all(np.array_equal(*pair) for pair in zip(edges, edges_by_tables, strict=True))


def _same(one: Callable[[int], object], rows: Rows64, other: Callable[[int], object], other_rows: Rows64) -> bool:
    if len(rows) != len(other_rows):
        return False
    return all(map(eq, map(one, rows.tolist()), map(other, other_rows.tolist())))


def _different_lines(mine: CanonicalOrder, theirs: CanonicalOrder) -> Iterator[str]:
    for line, by_tables in zip_longest(export_lines(mine.snapshot), export_lines(theirs.snapshot)):
        if line != by_tables:
            yield f"the memory gives {line}, the tables give {by_tables}"


def compare_snapshots(
    live: DocumentSnapshot, anew: DocumentSnapshot, mine: CanonicalOrder, theirs: CanonicalOrder
) -> Iterator[str]:
    """Yields a sentence for each difference. If the numbers of living passages, phrases or triples differ, yields only that
    difference, because it causes others.

    `mine` and `theirs` are the canonical orders of `live` and `anew`.
    """
    triples, triples_anew = mine.triples_and_mentions, theirs.triples_and_mentions
    sizes = [(len(mine.passages), len(theirs.passages)), (len(mine.phrases), len(theirs.phrases))]
    if any(a != b for a, b in [*sizes, (len(triples), len(triples_anew))]):
        yield "the numbers of living passages, phrases or triples differ from the tables"
        return
    differing = np.setxor1d(
        _passage_triples(live.snapshot, mine.passages, triples),
        _passage_triples(anew.snapshot, theirs.passages, triples_anew),
    )
    for place in np.unique(differing // (len(triples) + 1)).tolist():
        yield f"the triples of the passage {live.snapshot.passage_id(int(mine.passages[place]))} differ from the tables"
    fingerprints = (
        live.snapshot.term_fingerprints(text_hash)[mine.passages],
        anew.snapshot.term_fingerprints(text_hash)[theirs.passages],
    )
    for place in np.flatnonzero(fingerprints[0] != fingerprints[1]).tolist():
        yield f"the words of the passage {live.snapshot.passage_id(int(mine.passages[place]))} are not those of its text"
    fingerprints = (
        live.snapshot.name_fingerprints(text_hash)[mine.passages],
        anew.snapshot.name_fingerprints(text_hash)[theirs.passages],
    )
    for place in np.flatnonzero(fingerprints[0] != fingerprints[1]).tolist():
        id = live.snapshot.passage_id(int(mine.passages[place]))
        yield f"the names of the passage {id} are not those of its documents"
    yield from _documents(live, anew)
    for row in mine.passages.tolist():
        id = live.snapshot.passage_id(row)
        holders, holders_anew = live.documents_with_passage(id), anew.documents_with_passage(id)
        if holders != holders_anew:
            yield f"the passage {id} is in {holders} in memory, in {holders_anew} in the tables"


def _passage_triples(snapshot: Snapshot, passages: Rows64, triples: Rows64) -> Rows64:
    """Returns a number for each pair of a passage and a triple that it states: position in `passages` * (len(triples) + 1) +
    position in `triples` + 1. The position of a triple that is not living is -1."""
    matrix = snapshot.incidence.merged().tocoo()
    found: Rows64 = places(passages, snapshot.n_passages)[matrix.row] * (len(triples) + 1)
    found += places(triples, snapshot.n_triples)[matrix.col] + 1
    return found


def _documents(live: DocumentSnapshot, anew: DocumentSnapshot) -> Iterator[str]:
    for uri in sorted({*live.documents, *anew.documents}):
        mine, theirs = live.document(uri), anew.document(uri)
        if mine is None or theirs is None:
            yield f"the document {uri} is only in {'memory' if theirs is None else 'the tables'}"
        elif mine != theirs:
            yield f"the document {uri} differs from the tables"
