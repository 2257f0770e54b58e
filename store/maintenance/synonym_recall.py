"""The share of true synonym pairs that are edges, measured by comparing a sample of phrases with all others."""

from dataclasses import dataclass

import numpy as np

from store.fixed_point import no_vectors
from store.index.synonyms.lsh import meet, sketch
from store.index.synonyms.nearest_pairs import Nearest
from store.index.synonyms.phrase_variants import pair_rule
from store.index.synonyms.search import linkable, similar
from store.snapshot import Snapshot
from store.types import SynonymRule


@dataclass(frozen=True, slots=True)
class RecallMeasurement:
    """Of `phrases` sampled phrases, `pairs` edges should exist and `found` of them do.

    `missing` counts the edges that the rule asks for and that are not there: it asks that the two phrases are similar and that
    their sketches meet (`store.index.synonyms.lsh`).
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
    """Compares `sample` living phrases with all others. O(sample x phrases); the sample is the same for equal commits."""
    alive = snapshot.phrase_alive & snapshot.phrase_vectors.known & ~snapshot.phrase_crowded
    living = np.flatnonzero(alive)
    rows = np.sort(np.random.default_rng(snapshot.commit).permutation(living)[:sample])
    rows = np.array([row for row in rows.tolist() if linkable(snapshot.phrase(row))], np.int64)
    none = no_vectors(snapshot.dim)
    vectors = snapshot.phrase_vectors
    true, due = Nearest(rule.cap, snapshot.phrase), Nearest(rule.cap, snapshot.phrase)

    by_texts = pair_rule(rule, snapshot.phrase)
    for a, b, scores in similar(vectors, none, alive, rows, rule.threshold, by_rule=False, pair_rule=by_texts):
        long_enough = np.array([linkable(snapshot.phrase(other)) for other in b.tolist()], np.bool_)
        met = long_enough & meet(sketch(vectors.rows(a)), sketch(vectors.rows(b)), rule.threshold)
        true.add(a[long_enough], b[long_enough], scores[long_enough])
        due.add(a[met], b[met], scores[met])
    n = snapshot.n_phrases
    there = snapshot.synonym.entries(rows)
    edges = there[0].astype(np.int64) * n + there[1]
    wanted = [found[0] * n + found[1] for found in (true.pairs(), due.pairs())]
    found = int(np.isin(wanted[0], edges).sum())
    missing = len(wanted[1]) - int(np.isin(wanted[1], edges).sum())
    return RecallMeasurement(snapshot.commit, len(rows), len(wanted[0]), found, missing)
