"""Compares the memory in use with one built from the tables, in the parts that queries use and an export does not contain.

Vectors are compared while the tables are read (`store.verify.compare_vectors`). The two memories number their rows
differently, so everything is compared by name.
"""

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from store.export.canonical_order import CanonicalOrder, Rows, places
from store.snapshot import DocumentSnapshot, Snapshot


def compare_snapshots(
    live: DocumentSnapshot, anew: DocumentSnapshot, mine: CanonicalOrder, theirs: CanonicalOrder
) -> Iterator[str]:
    """Yields a sentence for each difference. If the counts of live passages, phrases or triples differ, yields only
    that, because it causes other differences.

    `mine` and `theirs` are the orders of `live` and `anew`.
    """
    triples, triples_anew = mine.triples_and_mentions, theirs.triples_and_mentions
    sizes = [(len(mine.passages), len(theirs.passages)), (len(mine.phrases), len(theirs.phrases))]
    if any(a != b for a, b in [*sizes, (len(triples), len(triples_anew))]):
        yield "other passages, phrases or triples live than by the tables"
        return
    differing = np.setxor1d(
        _statements(live.snapshot, mine.passages, triples),
        _statements(anew.snapshot, theirs.passages, triples_anew),
    )
    for place in np.unique(differing // (len(triples) + 1)).tolist():
        yield f"the passage {live.snapshot.passage_id(int(mine.passages[place]))} states other triples than by the tables"
    fingerprints = (
        live.snapshot.term_fingerprints(_term_hash)[mine.passages],
        anew.snapshot.term_fingerprints(_term_hash)[theirs.passages],
    )
    for place in np.flatnonzero(fingerprints[0] != fingerprints[1]).tolist():
        yield f"the words of the passage {live.snapshot.passage_id(int(mine.passages[place]))} are not those of its text"
    fingerprints = (
        live.snapshot.name_fingerprints(_term_hash)[mine.passages],
        anew.snapshot.name_fingerprints(_term_hash)[theirs.passages],
    )
    for place in np.flatnonzero(fingerprints[0] != fingerprints[1]).tolist():
        id = live.snapshot.passage_id(int(mine.passages[place]))
        yield f"the names of the passage {id} are not those of its documents"
    yield from _documents(live, anew)
    for row in mine.passages.tolist():
        id = live.snapshot.passage_id(row)
        holders, holders_anew = live.documents_with_passage(id), anew.documents_with_passage(id)
        if holders != holders_anew:
            yield f"the passage {id} is in {holders}, according to the tables in {holders_anew}"


def _statements(snapshot: Snapshot, passages: Rows, triples: Rows) -> Rows:
    """Encodes each pair of a passage and a triple that it states as one number: place in `passages` * (len(triples) + 1) +
    place in `triples` + 1. The place of a triple that is not live is -1."""
    matrix = snapshot.incidence.merged().tocoo()
    found: Rows = places(passages, snapshot.n_passages)[matrix.row] * (len(triples) + 1)
    found += places(triples, snapshot.n_triples)[matrix.col] + 1
    return found


def _documents(live: DocumentSnapshot, anew: DocumentSnapshot) -> Iterator[str]:
    for uri in sorted({*live.documents, *anew.documents}):
        mine, theirs = live.document(uri), anew.document(uri)
        if mine is None or theirs is None:
            yield f"the document {uri} is {'in memory' if theirs is None else 'in the tables'} alone"
        elif mine != theirs:
            yield f"the document {uri} differs from the tables"


def _term_hash(term: str) -> int:
    """Hashes a term to 64 bits."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
