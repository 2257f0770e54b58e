"""Plans how synonym edges change when phrases are added or removed.

Two living phrases have a synonym edge (HippoRAG, section 2.2: "synonymy edges") if their cosine reaches the threshold, neither
is crowded (`store.index.synonyms.crowding`), their sketches collide (`store.index.synonyms.lsh`), and their texts allow it
(`store.index.synonyms.phrase_variants`). No edge depends on a third phrase. Therefore a removed phrase loses its edges, a new
phrase is compared with all others, and every order of arrival gives the same edges.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from store.index.synonyms.pairs import NO_PAIRS, Rows, Scored


@dataclass(slots=True)
class SynonymChange:
    """The changes that one commit makes to synonym edges: pairs `a` < `b` with their new `weights` (0 removes an edge) and
    their old weights `before`. All arrays have the same length."""

    a: Rows = field(default_factory=lambda: NO_PAIRS[0])
    b: Rows = field(default_factory=lambda: NO_PAIRS[1])
    weights: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])
    before: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])


def plan_edges(
    died: Rows, born: Rows, n: int, edges: Callable[[Rows], Scored], search: Callable[[Rows], Iterable[Scored]]
) -> SynonymChange:
    """Returns the change that removes the edges of `died` and adds the pairs that `search` finds for `born`.

    `died`: rows that can no longer have synonyms; `born`: rows that can have synonyms from now on; both sorted. `n`: number of
    rows. `edges(rows)` returns all present edges of known rows; `search(rows)` yields all pairs of `rows` after the change.
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
    """Returns each pair once, encoded as (smaller row × n + larger row) and sorted, and the weights of the pairs."""
    a, b, weights = (np.concatenate(side) for side in zip(NO_PAIRS, *pieces, strict=True))
    keys, first = np.unique(np.minimum(a, b) * n + np.maximum(a, b), return_index=True)
    return keys, weights[first]
