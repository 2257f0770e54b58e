"""What is promised of looking for synonyms among many phrases: nearly all pairs, and exact cosines."""

import numpy as np

import store.image as store_image
from store.growing import Vectors
from store.recall import synonym_recall
from store.sketches import SketchIndex, sort
from store.synonyms import similar
from tests.store.small import complete, open_store


def clustered(n, dim, spread, seed=0):
    """Vectors around n / 8 centres, near enough to their centre that many pairs lie about the threshold."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((n // 8, dim))
    vectors = centres[random.integers(0, len(centres), n)] + spread * random.standard_normal((n, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def held(vectors):
    found = Vectors(vectors.shape[1])
    found.extend(vectors)
    return found


def pairs(vectors, queries, sketches=None):
    alive = np.ones(vectors.n, np.bool_)
    none = np.empty((0, vectors.dim), np.float32)
    return {
        (int(a), int(b)): float(s)
        for a, b, s in zip(*similar(vectors.view(), none, alive, queries, 0.8, sketches), strict=True)
    }


def test_nearly_every_pair_is_found_and_its_cosine_is_exact():
    vectors = held(clustered(60_000, 96, 0.48))
    sketches = SketchIndex(96)
    sketches.extend(vectors)
    sketches.adopt(sort(sketches.view()))
    queries = np.random.default_rng(1).choice(vectors.n, 1_500, replace=False)
    true, found = pairs(vectors, queries), pairs(vectors, queries, sketches)
    assert len(true) > 3_000
    assert found.items() <= true.items()
    assert len(found) >= 0.99 * len(true)


def test_which_pairs_are_found_depends_on_neither_order_nor_neighbours():
    vectors = clustered(20_000, 64, 0.48)
    asked = np.arange(0, 20_000, 40)
    whole, unsorted, few = SketchIndex(64), SketchIndex(64), SketchIndex(64)
    whole.extend(held(vectors))
    unsorted.extend(held(vectors))
    whole.adopt(sort(whole.view()))
    found = pairs(held(vectors), asked, whole)
    assert found.items() <= pairs(held(vectors), asked, unsorted).items()
    few.extend(held(vectors[::-1][:10_000]))
    few.adopt(sort(few.view()))
    last = [row for row in asked if row >= 10_000]
    among = {(a, b) for a, b in found if a >= 10_000 and b >= 10_000}
    mirrored = pairs(held(vectors[::-1][:10_000]), 19_999 - np.array(last), few)
    assert {(19_999 - a, 19_999 - b) for a, b in mirrored} == among


def test_taking_vectors_in_one_by_one_loses_none():
    vectors = clustered(3_000, 32, 0.4)
    grown, sketches = Vectors(32), SketchIndex(32)
    for vector in vectors:
        grown.extend(vector[None])
        sketches.extend(grown)
    queries = np.arange(0, 3_000, 10)
    true = pairs(grown, queries)
    assert len(pairs(grown, queries, sketches)) >= 0.99 * len(true)


def test_dead_phrases_are_nobodys_synonyms():
    vectors = held(clustered(4_000, 32, 0.3))
    sketches = SketchIndex(32)
    sketches.extend(vectors)
    alive = np.arange(4_000) % 2 == 0
    none = np.empty((0, 32), np.float32)
    _, b, _ = similar(vectors.view(), none, alive, np.arange(100), 0.8, sketches)
    assert len(b)
    assert alive[b].all()


def test_recall_is_measured_on_the_graph_itself(tmp_path, monkeypatch):
    documents = {f"d{i}": [("T", f"text {i}", None)] for i in range(9)}
    with open_store(tmp_path) as store:
        store.commit(complete(store, documents, []))
        recall = synonym_recall(store.snapshot(), store.rule, 100)
        assert recall.pairs == recall.found > 0
        assert recall.share == 1.0
        # Were a phrase's synonyms not found, the measure would say so.
        monkeypatch.setattr(store_image, "EXACT_BELOW", 0)
        monkeypatch.setattr(SketchIndex, "candidates", lambda *_: (np.empty(0, np.int64), np.empty(0, np.int64)))
        words = tuple((f"am{i}{i}", "is", f"bo{i}{i}") for i in range(30))
        store.commit(complete(store, {"more": [("T", "text 1", words)]}, []))
        missed = synonym_recall(store.snapshot(), store.rule, 100)
        assert 0 < missed.found < missed.pairs
