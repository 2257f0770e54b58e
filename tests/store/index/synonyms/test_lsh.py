"""What is promised of looking for synonyms: nearly all pairs, exact cosines, and the same pairs however they are looked for."""

from dataclasses import replace

import numpy as np
import pytest

import store.index.live_index as live_index
import store.index.synonyms.lsh
import store.index.synonyms.sketch_index
import store.index.synonyms.sorted_bands
from bench.support.hostile_vectors import in_letters
from store.export.json_lines import export_lines
from store.fixed_point import fixed, no_vectors
from store.index.synonyms.lsh import bands, sketch
from store.index.synonyms.search import similar
from store.index.synonyms.sketch_index import SketchIndex
from store.index.synonyms.sorted_bands import with_new_rows
from store.index.vectors.matrix import Vectors, VectorsView
from store.maintenance.synonym_recall import measure_recall
from store.store import Store
from store.types import Batch, Document, EncoderIdentity, PassageRef, PassageText, SynonymRule, passage_id
from tests.store.oracle import rounded_vectors
from tests.store.small_store import complete, open_store


def clustered(n, dim, spread, seed=0):
    """Vectors around n / 8 centres, near enough to their centre that many pairs lie about the threshold."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((n // 8, dim))
    vectors = centres[random.integers(0, len(centres), n)] + spread * random.standard_normal((n, dim))
    return rounded_vectors(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def held(vectors):
    found = Vectors(vectors.shape[1])
    found.extend(vectors)
    return found


def pairs(vectors, queries, sketches=None, extra=None, threshold=0.8, **options):
    extra = no_vectors(vectors.dim) if extra is None else fixed(extra)
    alive = np.ones(vectors.n + len(extra), np.bool_)
    found = similar(vectors.view(), extra, alive, queries, threshold, sketches, **options)
    every = [pair for part in found for pair in zip(*(side.tolist() for side in part), strict=True)]
    assert len({(a, b) for a, b, _ in every}) == len(every)
    return {(a, b): score for a, b, score in every}


def sketched(vectors, sort_first, threshold=0.8):
    """An index of all of `vectors`, of which the first so many are sorted, where the threshold has bands."""
    index = SketchIndex(threshold, vectors)
    index.extend()
    count = bands(threshold)
    index.swap_in(with_new_rows((), index.tail.rows.view()[:sort_first], count) if count else ())
    return index


@pytest.mark.slow
def test_nearly_every_pair_is_found_and_its_cosine_is_exact():
    vectors = held(clustered(20_000, 96, 0.48))
    queries = np.random.default_rng(1).choice(vectors.n, 1_500, replace=False)
    true, found = pairs(vectors, queries, by_rule=False), pairs(vectors, queries, sketched(vectors, vectors.n))
    assert len(true) > 3_000
    assert found.items() <= true.items()
    # They lie about the threshold, right at which one in fifty may be missed.
    assert len(found) >= 0.992 * len(true)


@pytest.mark.slow
@pytest.mark.parametrize(("threshold", "share"), [(0.45, 1.0), (0.55, 1.0), (0.7, 0.993), (0.9, 0.999), (0.97, 0.999)])
def test_nearly_every_pair_is_found_at_other_thresholds(threshold, share):
    vectors = held(clustered(6_000, 64, (1 / threshold - 1) ** 0.5))
    queries = np.arange(0, 6_000, 20)
    true = pairs(vectors, queries, threshold=threshold, by_rule=False)
    found = pairs(vectors, queries, sketched(vectors, 5_000, threshold), threshold=threshold)
    assert len(true) > 500
    assert found == pairs(vectors, queries, threshold=threshold)
    assert found.items() <= true.items()
    assert len(found) >= share * len(true)


def few_bands(monkeypatch):
    for module in (store.index.synonyms.lsh, store.index.synonyms.sketch_index):
        monkeypatch.setattr(module, "bands", lambda _: 30)


@pytest.fixture
def forgetful(monkeypatch):
    """Sketches that miss more pairs, so that it would show if it mattered which way a pair was looked for."""
    few_bands(monkeypatch)


@pytest.mark.slow
@pytest.mark.usefixtures("forgetful")
def test_found_pairs_depend_only_on_the_two_vectors():
    """Not on how they are looked for, nor on which of them came first, nor on the others: were it so, nor would the edges."""
    n = 6_000
    vectors = clustered(n, 64, 0.48)
    asked = np.arange(0, n, 6)
    found = pairs(held(vectors), asked)
    assert len(found) < len(pairs(held(vectors), asked, by_rule=False)) - 20
    for sort_first in (n, 2_000, 0):
        assert pairs(held(vectors), asked, sketched(held(vectors), sort_first)) == found
    first = held(vectors[: 3 * n // 4])
    assert pairs(first, asked, sketched(first, n // 2), extra=vectors[3 * n // 4 :]) == found
    assert pairs(held(vectors[:1]), asked, extra=vectors[1:]) == found
    last = held(vectors[::-1][: n // 2])
    mirrored = pairs(last, n - 1 - asked[asked >= n // 2], sketched(last, n // 5))
    among = {pair: cosine for pair, cosine in found.items() if min(pair) >= n // 2}
    assert {(n - 1 - a, n - 1 - b): cosine for (a, b), cosine in mirrored.items()} == among
    everyone = pairs(held(vectors), np.arange(n), sketched(held(vectors), n))
    assert {(b, a) for a, b in everyone} == set(everyone)


@pytest.mark.slow
def test_sketch_of_a_vector_does_not_depend_on_the_batch():
    for dim in (3, 96, 384, 1536):
        vectors = np.random.default_rng(dim).standard_normal((700, dim)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        whole = sketch(vectors)
        assert np.array_equal(whole, np.concatenate([sketch(row[None]) for row in vectors]))
        assert np.array_equal(whole[13:490], sketch(np.asfortranarray(vectors[13:490])))


def test_codes_lose_no_pair_and_reduce_the_vectors_that_are_read(monkeypatch):
    vectors = held(clustered(20_000, 64, 0.56))
    sketches, asked, read = sketched(vectors, vectors.n), np.arange(0, 20_000, 40), []
    rows_of = VectorsView.rows

    def note(view, rows):
        read.append(len(rows))
        return rows_of(view, rows)

    monkeypatch.setattr(VectorsView, "rows", note)
    without, read_without = pairs(vectors, asked, sketches), sum(read)
    vectors.view().coded_blocks()
    read.clear()
    assert pairs(vectors, asked, sketches) == without
    assert len(without) > 100
    assert sum(read) < 0.7 * read_without


def test_vectors_added_one_by_one_lose_no_pair():
    vectors = clustered(3_000, 32, 0.4)
    grown = Vectors(32)
    sketches = SketchIndex(0.8, grown)
    for vector in vectors:
        grown.extend(vector[None])
        sketches.extend()
    queries = np.arange(0, 3_000, 10)
    assert pairs(grown, queries, sketches) == pairs(grown, queries)


def test_dead_phrases_are_not_found_as_synonyms():
    vectors = held(clustered(4_000, 32, 0.3))
    sketches = SketchIndex(0.8, vectors)
    sketches.extend()
    alive = np.arange(4_000) % 2 == 0
    none = no_vectors(32)
    b = np.concatenate([found[1] for found in similar(vectors.view(), none, alive, np.arange(100), 0.8, sketches)])
    assert len(b)
    assert alive[b].all()


def test_measured_recall_is_one_and_falls_if_the_index_finds_no_candidates(tmp_path, monkeypatch):
    documents = {f"d{i}": [("T", f"text {i}", None)] for i in range(9)}
    with open_store(tmp_path, SynonymRule(0.8, variants=False)) as memory:
        memory.commit(complete(memory, documents, []))
        recall = measure_recall(memory.snapshot(), memory.rule, 100)
        assert recall.pairs == recall.found > 0
        assert recall.share == 1.0
        # Were a phrase's synonyms not found, the measure would say so.
        monkeypatch.setattr(live_index, "EXACT_BELOW", 0)
        monkeypatch.setattr(SketchIndex, "candidates", lambda *_: iter(()))
        words = tuple((f"am{i}{i}", "is", f"bo{i}{i}") for i in range(30))
        memory.commit(complete(memory, {"more": [("T", "text 1", words)]}, []))
        missed = measure_recall(memory.snapshot(), memory.rule, 100)
        assert 0 < missed.found < missed.pairs


def phrases_of(vectors):
    return {f"phrase {in_letters(f'{i:05d}')}": vector for i, vector in enumerate(vectors)}


def filled(folder, vectors, order, size, save=False):
    """What a store exports that got a document for every two phrases, so many at a time, in this order."""
    names = list(vectors)
    with Store(folder, EncoderIdentity("clustered", 48), SynonymRule(0.8, variants=False)) as memory:
        for start in range(0, len(order), size):
            documents, passages, triples = [], [], []
            for i in order[start : start + size]:
                text = PassageText(passage_id("", f"text {i}"), "", f"text {i}")
                passages.append(text)
                triples.append((names[2 * i], "near", names[2 * i + 1]))
                documents.append(Document(f"d{i}", "test", passages=(PassageRef(text.id, {}, (triples[-1],)),)))
            batch = Batch(tuple(documents), (), tuple(passages))
            missing, unit = memory.missing(batch), np.eye(48, dtype=np.float32)[0]
            memory.commit(
                replace(
                    batch,
                    passage_vectors={passage.id: unit for passage in missing.passages},
                    phrase_vectors={phrase: vectors[phrase] for phrase in missing.phrases},
                    triple_vectors=dict.fromkeys(missing.triples, unit),
                )
            )
            if start % (3 * size) == 0:
                memory.fold()
        assert not save or memory.write_checkpoint()
        return list(export_lines(memory.snapshot()))


@pytest.mark.slow
@pytest.mark.usefixtures("forgetful")
def test_edges_are_independent_of_order_across_search_methods(tmp_path, monkeypatch):
    """The first phrases are compared with all, later ones by sketches, most of them sorted: the edges are the same whichever
    came first."""
    monkeypatch.setattr(live_index, "EXACT_BELOW", 500)
    monkeypatch.setattr(store.index.synonyms.sketch_index, "TAIL_MAX_SKETCHES", 100)
    vectors = phrases_of(clustered(1_600, 48, 0.46, seed=5))
    order = np.arange(800)
    forward = filled(tmp_path / "a", vectors, order, 100)
    shuffled = filled(tmp_path / "b", vectors, np.random.default_rng(2).permutation(order), 130)
    assert forward == shuffled


@pytest.mark.slow
def test_edges_of_another_rule_version_are_rebuilt_at_opening(tmp_path, monkeypatch):
    monkeypatch.setattr(live_index, "EXACT_BELOW", 500)
    vectors, order = phrases_of(clustered(1_600, 48, 0.46, seed=5)), np.arange(800)
    expected = filled(tmp_path / "fresh", vectors, order, 300)
    with monkeypatch.context() as earlier:
        earlier.setattr(SynonymRule, "VERSION", SynonymRule.VERSION - 1)
        few_bands(earlier)
        assert filled(tmp_path / "old", vectors, order, 300) != expected
    for _ in range(2):
        with Store(tmp_path / "old", EncoderIdentity("clustered", 48), SynonymRule(0.8, variants=False)) as memory:
            assert list(export_lines(memory.snapshot())) == expected
            memory.write_checkpoint()
            commit = memory.snapshot().commit
    with Store(tmp_path / "old", EncoderIdentity("clustered", 48), SynonymRule(0.8, variants=False)) as memory:
        assert memory.snapshot().commit == commit


@pytest.mark.slow
def test_sorted_bands_are_saved_and_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(live_index, "EXACT_BELOW", 500)
    monkeypatch.setattr(store.index.synonyms.sketch_index, "TAIL_MAX_SKETCHES", 100)
    monkeypatch.setattr(store.index.synonyms.sorted_bands, "JOINED_SHARE", 0)
    vectors, order = phrases_of(clustered(1_600, 48, 0.46, seed=5)), np.arange(800)
    expected = filled(tmp_path, vectors, order[:600], 150, save=True)
    with Store(tmp_path, EncoderIdentity("clustered", 48), SynonymRule(0.8, variants=False)) as memory:
        assert memory.opened_from.startswith("checkpoint")
        sketches = memory._index.sketches
        assert len(sketches.runs) > 1
        for run in sketches.runs:
            whole = sketches.tail.sketches(np.arange(run.first, run.end), memory.snapshot().phrase_vectors.rows)
            [anew] = with_new_rows((), whole, bands(0.8))
            assert all(np.array_equal(array, anew.arrays()[name]) for name, array in run.arrays().items())
        assert list(export_lines(memory.snapshot())) == expected
    assert filled(tmp_path, vectors, order[600:], 150) == filled(tmp_path / "fresh", vectors, order, 150)
