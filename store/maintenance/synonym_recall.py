"""Measures the share of true synonym pairs that are edges by comparing a sample of phrases with all other phrases."""

from dataclasses import dataclass

import numpy as np

from store.fixed_point import no_vectors
from store.index.synonyms.lsh import collides, sketch
from store.index.synonyms.phrase_variants import pair_rule
from store.index.synonyms.search import can_have_synonyms, similar
from store.snapshot import Snapshot
from store.types import SynonymRule


@dataclass(frozen=True, slots=True)
class RecallMeasurement:
    """The recall for a sample of `phrases` phrases: `found` of their `pairs` true synonym pairs are edges.

    `missing` counts the pairs without an edge although the rule requires one: the phrases are similar and their sketches
    collide (`store.index.synonyms.lsh`).
    """

    commit: int
    phrases: int
    pairs: int
    found: int
    missing: int

    @property
    def share(self) -> float:
        return self.found / self.pairs if self.pairs else 1.0


def measure_recall(snapshot: Snapshot, rule: SynonymRule, sample: int) -> RecallMeasurement:
    """Compares `sample` living phrases with all others. Takes O(sample x phrases) time; equal commits give equal samples."""
    alive = snapshot.phrase_alive & snapshot.phrase_vectors.known & ~snapshot.phrase_crowded
    living = np.flatnonzero(alive)
    rows = np.sort(np.random.default_rng(snapshot.commit).permutation(living)[:sample])
    rows = np.array([row for row in rows.tolist() if can_have_synonyms(snapshot.phrase(row))], np.int64)
    none = no_vectors(snapshot.dim)
    vectors = snapshot.phrase_vectors
    n, by_texts = snapshot.n_phrases, pair_rule(rule, snapshot.phrase)
    one, other, _ = snapshot.synonym.entries(rows)
    edges = one.astype(np.int64) * n + other
    pairs = found = missing = 0
    for a, b, _ in similar(vectors, none, alive, rows, rule.threshold, by_rule=False, pair_rule=by_texts):
        long_enough = np.array([can_have_synonyms(snapshot.phrase(row)) for row in b.tolist()], np.bool_)
        there = np.isin(a * n + b, edges)
        absent = np.flatnonzero(long_enough & ~there)
        pairs += int(long_enough.sum())
        found += int((long_enough & there).sum())
        missing += int(collides(sketch(vectors.rows(a[absent])), sketch(vectors.rows(b[absent])), rule.threshold).sum())
    return RecallMeasurement(snapshot.commit, len(rows), pairs, found, missing)
