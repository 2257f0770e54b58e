"""How many of the synonym edges that there should be there are: measured on the graph, by comparing a sample exactly."""

from dataclasses import dataclass

import numpy as np

from store.plan import SynonymRule
from store.snapshot import Snapshot
from store.synonyms import linkable, similar


@dataclass(frozen=True, slots=True)
class Recall:
    """Of `phrases` sampled phrases, `pairs` edges should exist and `found` do."""

    commit: int
    phrases: int
    pairs: int
    found: int

    @property
    def share(self) -> float:
        return self.found / self.pairs if self.pairs else 1.0


def synonym_recall(snapshot: Snapshot, rule: SynonymRule, sample: int) -> Recall:
    """Compares `sample` living phrases with all others. O(sample x phrases); the sample is the same for equal commits."""
    alive = snapshot.phrase_alive.copy()
    living = np.flatnonzero(alive)
    rows = np.sort(np.random.default_rng(snapshot.commit).permutation(living)[:sample])
    rows = np.array([row for row in rows.tolist() if linkable(snapshot.phrase(row))], np.int64)
    none = np.empty((0, snapshot.dim), np.float32)
    near: dict[int, list[tuple[float, str, int]]] = {row: [] for row in rows.tolist()}
    a, b, scores = similar(snapshot.phrase_vectors, none, alive, rows, rule.threshold)
    for row, other, score in zip(a.tolist(), b.tolist(), scores.tolist(), strict=True):
        if linkable(snapshot.phrase(other)):
            near[row].append((-score, snapshot.phrase(other), other))
    there: dict[int, set[int]] = {row: set() for row in near}
    for row, other, _ in zip(*(part.tolist() for part in snapshot.synonym.entries(rows)), strict=True):
        there[row].add(other)
    pairs = found = 0
    for row, others in near.items():
        wanted = {other for _, _, other in sorted(others)[: rule.cap]}
        pairs += len(wanted)
        found += len(wanted & there[row])
    return Recall(snapshot.commit, len(rows), pairs, found)
