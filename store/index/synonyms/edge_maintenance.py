"""Plans how synonym edges change as phrases come and go.

Two living phrases have a synonym edge if their cosine reaches the threshold (HippoRAG, section 2.2: "synonymy edges"), neither
is crowded (`store.index.synonyms.crowding`), their sketches collide (`store.index.synonyms.lsh`), and their texts allow it
(`store.index.synonyms.phrase_variants`). An edge depends on no third phrase. So a phrase that goes takes its edges along, a
phrase that comes is compared with the others, and any order of arrival ends in the same edges.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from store.index.synonyms.pairs import NO_PAIRS, Rows, Scored


@dataclass(slots=True)
class SynonymChange:
    """What one commit does to the synonym edges: the new `weights` of pairs (a < b; 0 = no longer an edge) and the weights
    `before`. Arrays of one length."""

    a: Rows = field(default_factory=lambda: NO_PAIRS[0])
    b: Rows = field(default_factory=lambda: NO_PAIRS[1])
    weights: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])
    before: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])


def plan_edges(
    died: Rows, born: Rows, n: int, edges: Callable[[Rows], Scored], search: Callable[[Rows], Iterable[Scored]]
) -> SynonymChange:
    """The change after which the edges of `died` are gone and those of `born` are the pairs that `search` finds.

    `died` and `born`: rows, in order, that can no longer have synonyms, and that can from now on. `n`: number of rows.
    `edges(rows)` gives all present edges of known rows; `search(rows)` all pairs of `rows` after the change, in pieces.
    """
    present_keys, present = _by_key([edges(np.union1d(died, born))], n)
    found_keys, found = _by_key(search(born) if len(born) else (), n)
    keys = np.union1d(present_keys, found_keys)
    before, after = np.zeros(len(keys)), np.zeros(len(keys))
    before[np.searchsorted(keys, present_keys)] = present
    after[np.searchsorted(keys, found_keys)] = found
    changed = before != after
    a, b = np.divmod(keys[changed], n)
    return SynonymChange(a, b, after[changed], before[changed])


def _by_key(pieces: Iterable[Scored], n: int) -> tuple[Rows, NDArray[np.float64]]:
    """The pairs, each once, as (smaller row × n + larger row) in order, and their weights."""
    a, b, weights = (np.concatenate(side) for side in zip(NO_PAIRS, *pieces, strict=True))
    keys, first = np.unique(np.minimum(a, b) * n + np.maximum(a, b), return_index=True)
    return keys, weights[first]
