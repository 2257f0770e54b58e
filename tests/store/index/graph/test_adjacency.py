"""The walked graph contains every edge once with its weight, however its matrices came about."""

import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import store.index.delta_csr
import store.index.graph.change_layers
import store.index.graph.joined_base
from store.index.graph.adjacency import Adjacency
from store.index.graph.edge_entries import EdgeWeights
from store.snapshot import Snapshot
from store.store import Store
from store.types import Document, EncoderIdentity
from tests.store import oracle
from tests.store.small_store import PHRASES, complete

WEIGHTS = [
    EdgeWeights(relation=2.0, mention=2.0, synonym=2.0, context=1.0),
    EdgeWeights(relation=2.0, mention=0.5, synonym=2.0, occurrence=1.0),
    EdgeWeights(relation=1.0, mention=0.0, synonym=0.0),
]


def expected(snapshot: Snapshot, weights: EdgeWeights) -> np.ndarray:
    """Returns the weights, computed edge by edge."""
    first = snapshot.n_phrases
    whole = np.zeros((first + snapshot.n_passages,) * 2)
    for kind in ("relation", "mention", "synonym"):
        whole[:first, :first] += getattr(weights, kind) * getattr(snapshot, kind).merged().toarray()
    across = weights.context * snapshot.context.merged().toarray()
    for passage, triple in zip(*snapshot.incidence.merged().nonzero(), strict=True):
        for phrase in {int(end) for end in snapshot.triple_ends[triple]}:
            across[passage, phrase] += weights.occurrence
    whole[first:, :first] += across
    whole[:first, first:] += across.T
    return whole


def product(walk: Adjacency, x: np.ndarray) -> np.ndarray:
    return walk.inside.leave(walk.inside.matvec(walk.inside.enter(x)))


@pytest.mark.slow
@pytest.mark.parametrize(("fold_least", "layer_least"), [(5, 100_000), (40, 3), (100_000, 100_000), (100_000, 3)])
def test_every_edge_has_its_weight_after_any_changes(
    tmp_path: Path, fold_least: int, layer_least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.index.delta_csr, "FOLD_MIN_ENTRIES", fold_least)
    monkeypatch.setattr(store.index.graph.change_layers, "LAYER_MIN_ENTRIES", layer_least)
    before: list[tuple[Snapshot, EdgeWeights, np.ndarray]] = []
    chance = random.Random(fold_least)
    with Store(tmp_path / "store", EncoderIdentity("oracle", oracle.DIM)) as memory:
        for step in range(15):
            given = [(chance.choice(PHRASES), chance.choice(["is", ""]), chance.choice(PHRASES)) for _ in range(4)]
            changes = {f"file:///{chance.randint(0, 8)}": [("T", f"text {chance.randint(0, 8)}", tuple(given))]}
            gone = [f"file:///{chance.randint(0, 8)}"] if step % 3 else []
            memory.commit(complete(memory, changes, [uri for uri in gone if uri not in changes]))
            snapshot = memory.snapshot()
            for weights in WEIGHTS:
                walk, whole = snapshot.adjacency(weights), expected(snapshot, weights)
                assert walk.merged().toarray() == pytest.approx(whole, abs=1e-9)
                x = np.random.default_rng(step).random(len(whole))
                assert product(walk, x) == pytest.approx(whole @ x, abs=1e-9)
                assert product(walk, x.astype(np.float32)) == pytest.approx(whole @ x, rel=1e-5, abs=1e-5)
                assert walk.degrees == pytest.approx(whole.sum(axis=1), abs=1e-9)
                assert all(walk.degrees[whole.sum(axis=1) == 0] == 0)
                inside, nodes = walk.inside, np.arange(len(whole))
                assert inside.outer(inside.inner(nodes)).tolist() == nodes.tolist()
                assert inside.degrees_of(inside.inner(nodes)).tolist() == walk.degrees.tolist()
                assert inside.total_degree == pytest.approx(whole.sum())
                assert inside.largest_passage_degree == max(walk.degrees[snapshot.n_phrases :])
                some = np.array(chance.sample(range(len(whole)), min(5, len(whole))))
                nodes, others, found = walk.neighbours(some)
                part = np.zeros_like(whole)
                part[nodes, others] = found
                wanted = np.where(np.isin(np.arange(len(whole)), some)[:, None], whole, 0.0)
                assert part == pytest.approx(wanted, abs=1e-9)
                assert len(found) == np.count_nonzero(wanted > 1e-9)
                before.append((snapshot, weights, whole))
            # An earlier snapshot that is first walked after later ones.
            for earlier, weights, whole in chance.sample(before, 3):
                walk = Adjacency(earlier.graph, weights)
                assert product(walk, np.eye(len(whole))[0]) == pytest.approx(whole[0], abs=1e-9)
                assert walk.degrees == pytest.approx(whole.sum(axis=1), abs=1e-9)


def test_a_snapshot_and_its_walk_stay_what_they_were(tmp_path: Path) -> None:
    with Store(tmp_path / "store", EncoderIdentity("oracle", oracle.DIM)) as memory:
        memory.commit(complete(memory, {"file:///a": [("T", "text 1", (("am", "is", "bo"),))]}, []))
        before = memory.snapshot()
        walk = before.adjacency(WEIGHTS[0])
        whole = expected(before, WEIGHTS[0])
        memory.commit(complete(memory, {"file:///b": [("T", "text 2", (("am", "is", "cy"),))]}, ["file:///a"]))
        memory.fold()
        assert walk.merged().toarray() == pytest.approx(whole)
        assert before.adjacency(WEIGHTS[0]) is walk
        assert memory.snapshot().adjacency(WEIGHTS[0]) is not walk


def test_adjacency_of_empty_memory_is_empty(tmp_path: Path) -> None:
    with Store(tmp_path / "store", EncoderIdentity("oracle", oracle.DIM)) as memory:
        walk = memory.snapshot().adjacency(WEIGHTS[0])
        assert len(product(walk, np.zeros(0))) == 0
        assert walk.merged().shape == (0, 0)


def is_document(number: int, document: Document) -> bool:
    return document.uri[1] == str(number)


@pytest.mark.parametrize(("limit", "joins"), [(1 << 30, 6), (1, 18)])
def test_joined_graphs_are_cached_up_to_the_byte_limit(tmp_path: Path, monkeypatch, limit: int, joins: int) -> None:
    joined = []
    join = store.index.graph.joined_base._join

    def counted(*args):
        joined.append(1)
        return join(*args)

    monkeypatch.setattr(store.index.graph.joined_base, "_join", counted)
    monkeypatch.setattr(store.index.graph.joined_base, "CACHED_BYTES", limit)
    with Store(tmp_path, EncoderIdentity("oracle", oracle.DIM)) as memory:
        memory.commit(complete(memory, {f"d{i}": [("T", f"text {i}", None)] for i in range(6)}, []))
        scopes = [memory.scoped(i, partial(is_document, i)) for i in range(6)]
        snapshots = [scope.snapshot for scope in scopes]
        for _ in range(3):
            for snapshot in snapshots:
                Adjacency(snapshot.graph, WEIGHTS[1])
    assert len(joined) == joins
