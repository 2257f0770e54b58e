"""How many of the synonym edges that there should be there are: measured on the graph, by comparing a sample exactly."""

from dataclasses import dataclass

import numpy as np

from store.plan import SynonymRule
from store.sketches import meet, sketch
from store.snapshot import Snapshot
from store.synonyms import linkable, similar


@dataclass(frozen=True, slots=True)
class Recall:
    """Of `phrases` sampled phrases, `pairs` edges should exist and `found` do; `missing` lack of those that the rule asks for,
    which is that two phrases are similar and their sketches meet."""

    commit: int
    phrases: int
    pairs: int
    found: int
    missing: int

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
    vectors = snapshot.phrase_vectors
    a, b, scores = similar(vectors, none, alive, rows, rule.threshold, by_rule=False)
    met = meet(sketch(vectors.rows(a)), sketch(vectors.rows(b)), rule.threshold)
    true: dict[int, list[tuple[float, str, int]]] = {row: [] for row in rows.tolist()}
    due: dict[int, list[tuple[float, str, int]]] = {row: [] for row in rows.tolist()}
    for row, other, score, meets in zip(a.tolist(), b.tolist(), scores.tolist(), met.tolist(), strict=True):
        if linkable(snapshot.phrase(other)):
            true[row].append((-score, snapshot.phrase(other), other))
            if meets:
                due[row].append(true[row][-1])
    there: dict[int, set[int]] = {row: set() for row in true}
    for row, other, _ in zip(*(part.tolist() for part in snapshot.synonym.entries(rows)), strict=True):
        there[row].add(other)
    pairs = found = missing = 0
    for row in true:
        wanted = _nearest(true[row], rule.cap)
        pairs += len(wanted)
        found += len(wanted & there[row])
        missing += len(_nearest(due[row], rule.cap) - there[row])
    return Recall(snapshot.commit, len(rows), pairs, found, missing)


def _nearest(others: list[tuple[float, str, int]], cap: int) -> set[int]:
    return {other for _, _, other in sorted(others)[:cap]}
