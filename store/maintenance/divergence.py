"""Where two memories of the same documents differ in what queries use and an export does not show.

The one in use is numbered by its history, the one that was made anew by the tables: everything is compared by name.
"""

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from store.document_snapshot import Pinned
from store.export.canonical_order import Ordered, Rows, places
from store.index.arrays import VectorsView
from store.snapshot import Snapshot

TOGETHER = 8_192
"""Vectors that are compared at a time."""


def disagreements(live: Pinned, anew: Pinned) -> Iterator[str]:
    """A sentence for each difference. Where not even the same things live, that alone: the rest would follow from it."""
    mine, theirs = Ordered(live.snapshot), Ordered(anew.snapshot)
    triples, triples_anew = mine.triples(), theirs.triples()
    sizes = [(len(mine.passages), len(theirs.passages)), (len(mine.phrases), len(theirs.phrases))]
    if any(a != b for a, b in [*sizes, (len(triples), len(triples_anew))]):
        yield "other passages, phrases or triples live than by the tables"
        return
    for name, rows, rows_anew in (
        ("passage", mine.passages, theirs.passages),
        ("phrase", mine.phrases, theirs.phrases),
        ("triple", triples, triples_anew),
    ):
        pair = getattr(live.snapshot, f"{name}_vectors"), getattr(anew.snapshot, f"{name}_vectors")
        for place in _other_vectors(*pair, rows, rows_anew):
            yield f"the vector of the {name} {_named(live.snapshot, name, int(rows[place]))} is another than in the tables"
    stated = _stated(live.snapshot, mine.passages, triples), _stated(anew.snapshot, theirs.passages, triples_anew)
    for passage, _ in sorted(stated[0] ^ stated[1]):
        yield f"the passage {live.snapshot.passage(int(mine.passages[passage])).id} states other triples than by the tables"
    prints = live.snapshot.term_prints(_print)[mine.passages], anew.snapshot.term_prints(_print)[theirs.passages]
    for place in np.flatnonzero(prints[0] != prints[1]).tolist():
        yield f"the words of the passage {live.snapshot.passage(int(mine.passages[place])).id} are not those of its text"
    yield from _documents(live, anew)
    for row in mine.passages.tolist():
        id = live.snapshot.passage(row).id
        if live.users(id) != anew.users(id):
            yield f"the passage {id} is held by {live.users(id)}, by the tables by {anew.users(id)}"


def _other_vectors(mine: VectorsView, theirs: VectorsView, rows: Rows, rows_anew: Rows) -> Iterator[int]:
    for start in range(0, len(rows), TOGETHER):
        part = slice(start, start + TOGETHER)
        differ = (mine.rows(rows[part]) != theirs.rows(rows_anew[part])).any(axis=1)
        yield from (start + np.flatnonzero(differ)).tolist()


def _stated(snapshot: Snapshot, passages: Rows, triples: Rows) -> set[tuple[int, int]]:
    """(passage, triple) for every statement, both as places in the given order."""
    matrix = snapshot.incidence.merged().tocoo()
    return set(
        zip(
            places(passages, snapshot.n_passages)[matrix.row].tolist(),
            places(triples, snapshot.n_triples)[matrix.col].tolist(),
            strict=True,
        )
    )


def _documents(live: Pinned, anew: Pinned) -> Iterator[str]:
    for uri in sorted({*live.documents, *anew.documents}):
        mine, theirs = live.document(uri), anew.document(uri)
        if mine is None or theirs is None:
            yield f"the document {uri} is {'in memory' if theirs is None else 'in the tables'} alone"
        elif mine != theirs:
            yield f"the document {uri} is not what the tables say"


def _named(snapshot: Snapshot, kind: str, row: int) -> str:
    if kind == "passage":
        return snapshot.passage(row).id
    return snapshot.phrase(row) if kind == "phrase" else str(snapshot.triple(row))


def _print(term: str) -> int:
    """64 bits that stand for a term."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
