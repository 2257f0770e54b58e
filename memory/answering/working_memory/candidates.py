"""The phrases that an inquiry may retrieve: formulas 6 and 7 of HGMem as masks over the snapshot's phrases.

Local investigation of a point with entities V(e): the union, over v in V(e), of v's neighbours in the graph (relation, mention
and synonym edges) and in the memory (vertices that share a point with v). Global exploration: the graph's phrases without the
memory's vertices. Sparse matrices and arrays do the work; loops cover only the memory's few entities.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from memory.answering.working_memory.records.points import MemoryPoint, WorkingMemory
from store.index.graph.edge_entries import MIN_WEIGHT
from store.snapshot import Snapshot

Mask = NDArray[np.bool_]


def rows_of(snapshot: Snapshot, phrases: Iterable[str]) -> NDArray[np.int64]:
    """Returns the rows of those phrases that are in the snapshot, ascending."""
    found = {row for phrase in phrases if (row := snapshot.phrase_row(phrase)) is not None}
    return np.array(sorted(found), np.int64)


def local_candidates(snapshot: Snapshot, memory: WorkingMemory, point: MemoryPoint) -> Mask:
    """Returns formula 6: neighbours of the point's entities in graph and memory, shape (n_phrases,).

    An entity of the point is a candidate only if it is a neighbour of another one. The cost depends on the number of the
    entities' edges, not on the size of the graph.
    """
    mask = np.zeros(snapshot.n_phrases, np.bool_)
    own = rows_of(snapshot, point.entities)
    if len(own):
        for edges in (snapshot.relation, snapshot.mention, snapshot.synonym):
            rows, cols, weights = edges.entries(own)
            mask[cols[(weights > MIN_WEIGHT) & (rows != cols)]] = True
    mask[rows_of(snapshot, memory.neighbours(point.entities))] = True
    return mask & snapshot.phrase_alive


def global_candidates(snapshot: Snapshot, memory: WorkingMemory) -> Mask:
    """Returns formula 7: the graph's phrases that are not vertices of the memory, shape (n_phrases,)."""
    mask = snapshot.phrase_alive.copy()
    mask[rows_of(snapshot, memory.vertices)] = False
    return mask
