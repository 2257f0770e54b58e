"""Local investigation and global exploration retrieve from the sets of formulas 6 and 7, on random graphs.

The oracle knows documents and sets alone (`tests.store.oracle`): no matrix, no row, no code of the store or the method.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.answering.working_memory.inquiries import Concern
from memory.answering.working_memory.points import MemoryPoint, WorkingMemory
from memory.answering.working_memory.subquery_retrieval import best_rows, global_candidates, inquire, local_candidates
from memory.answering.working_memory.trace import DeepSettings
from memory.types import Encoder, Matrix
from store.snapshot import Snapshot
from tests.store import oracle
from tests.store.small_store import PHRASES, complete, extract, open_store

STEPS = 12
MEMORIES = 12
"""Random working memories on the graph after each step."""


class OracleEncoder(Encoder):
    """The oracle's vectors as a query encoder."""

    def encode(self, texts: Sequence[str]) -> Matrix:
        return np.stack([oracle.vector(text) for text in texts])

    def encode_query(self, text: str) -> NDArray[np.float32]:
        return oracle.vector(text)


@dataclass
class Graph:
    """The same memory twice: a snapshot, and sets of texts."""

    snapshot: Snapshot
    neighbours: dict[str, set[str]]
    """For each phrase those that a relation or synonym edge links it with."""
    holds: dict[str, set[str]]
    """For each passage id its phrases."""
    texts: dict[str, str]
    triples: set[tuple[str, str, str]]


def graph_of(snapshot: Snapshot, documents: oracle.Documents) -> Graph:
    lines = oracle.export(documents, extract)
    graph = Graph(snapshot, {}, {}, {}, set())
    for line in lines:
        if line["kind"] == "phrase":
            graph.neighbours[line["text"]] = set()
        elif line["kind"] == "triple":
            graph.triples.add((line["subject"], line["predicate"], line["object"]))
    for line in lines:
        if line["kind"] == "edge" and line["type"] == "context":
            graph.holds.setdefault(line["source"], set()).add(line["target"])
        elif line["kind"] == "edge":
            graph.neighbours[line["source"]].add(line["target"])
            graph.neighbours[line["target"]].add(line["source"])
    return graph


@pytest.fixture(params=range(4), scope="module")
def graphs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Graph]]:
    """A store's snapshots after random adds, edits, removals and folds: bases, logs and dead rows, all there is."""
    chance = random.Random(request.param)
    folder: Path = tmp_path_factory.mktemp("graph") / "store"
    documents: oracle.Documents = {}
    seen = []
    with open_store(folder) as store:
        for step in range(STEPS):
            changed = {}
            for _ in range(chance.randint(1, 3)):
                given = tuple(
                    (chance.choice(PHRASES), "is", chance.choice(PHRASES)) for _ in range(chance.randint(0, 4))
                )
                uri = f"file:///{chance.randint(0, 9)}"
                changed[uri] = [("T", f"text {chance.randint(0, 30)}", given or None)]
            gone = [uri for uri in documents if uri not in changed and chance.random() < 0.2]
            store.commit(complete(store, changed, gone))
            documents = {uri: told for uri, told in (documents | changed).items() if uri not in gone}
            if step == STEPS // 2:
                store.fold()
            seen.append(graph_of(store.snapshot(), documents))
        yield seen


def memories(graph: Graph, chance: random.Random) -> Iterator[WorkingMemory]:
    """Points over phrases of the graph, and now and then over one that it lacks."""
    phrases = sorted(graph.neighbours)
    for _ in range(MEMORIES):
        points = []
        for number in range(chance.randint(1, 4)):
            inside = chance.sample(phrases, min(len(phrases), chance.randint(1, 4)))
            absent = ("unheard of",) if chance.random() < 0.3 else ()
            points.append(MemoryPoint(f"p{number}", "d", tuple(sorted({*inside, *absent})), ("x",), absent))
        yield WorkingMemory(tuple(points), len(points))


def formula_6(graph: Graph, memory: WorkingMemory, point: MemoryPoint) -> set[str]:
    around: set[str] = set()
    for entity in point.entities:
        around |= graph.neighbours.get(entity, set())
        for other in memory.points:
            if entity in other.entities:
                around |= set(other.entities) - {entity}
    return around & graph.neighbours.keys()


def formula_7(graph: Graph, memory: WorkingMemory) -> set[str]:
    return graph.neighbours.keys() - {entity for point in memory.points for entity in point.entities}


def texts(graph: Graph, mask: np.ndarray) -> set[str]:
    return {graph.snapshot.phrase(int(row)) for row in np.flatnonzero(mask)}


def cosine(query: str, text: str) -> float:
    return float(np.dot(oracle.vector(query).astype(float), oracle.rounded_vectors(oracle.vector(text)).astype(float)))


@pytest.mark.slow
def test_candidates_equal_the_sets_of_formulas_6_and_7_of_the_paper(graphs: list[Graph]) -> None:
    local = 0
    for at, graph in enumerate(graphs):
        if not graph.neighbours:
            continue
        for memory in memories(graph, random.Random(at)):
            assert texts(graph, global_candidates(graph.snapshot, memory)) == formula_7(graph, memory)
            for point in memory.points:
                expected = formula_6(graph, memory, point)
                assert texts(graph, local_candidates(graph.snapshot, memory, point)) == expected
                local += bool(expected)
    assert local > 50


@pytest.mark.slow
def test_retrieved_entities_triples_and_passages_are_the_nearest_candidates(graphs: list[Graph]) -> None:
    settings = DeepSettings(entities=3, triples=4, passages=2)
    found = 0
    for at, graph in enumerate(graphs):
        if not graph.neighbours:
            continue
        chance = random.Random(at)
        for memory in memories(graph, chance):
            about = chance.choice([*memory.points, None])
            subquery = chance.choice(PHRASES) + chance.choice(["", " of", " zz"])
            concern = Concern("why", subquery, None if about is None else about.id)
            among = formula_7(graph, memory) if about is None else formula_6(graph, memory, about)
            inquiry = inquire(graph.snapshot, OracleEncoder(), memory, concern, settings)
            entities = [entity.phrase for entity in inquiry.entities]
            found += len(entities)
            assert inquiry.candidates == len(among)
            assert set(entities) <= among
            best = sorted((cosine(concern.subquery, phrase) for phrase in among), reverse=True)[:3]
            assert [entity.score for entity in inquiry.entities] == pytest.approx(best, abs=1e-5)

            about_them = {t for t in graph.triples if t[0] in entities or t[2] in entities}
            got = {(t.subject, t.predicate, t.object) for t in inquiry.triples}
            assert got <= about_them
            near = {t: cosine(concern.subquery, " ".join(t)) for t in about_them}
            nearest = {
                t
                for entity in entities
                for t in sorted((t for t in near if entity in (t[0], t[2])), key=lambda t: (-near[t], t))[:4]
            }
            assert len(got) == len(inquiry.triples) == len(nearest), "the four nearest of each entity"
            best = sorted((near[t] for t in nearest), reverse=True)
            assert [triple.score for triple in inquiry.triples] == pytest.approx(best, abs=1e-5)

            holders = {id for id, inside in graph.holds.items() if inside & set(entities)}
            assert {passage.id for passage in inquiry.passages} <= holders
            assert len(inquiry.passages) == min(2, len(holders))
            assert [p.score for p in inquiry.passages] == sorted((p.score for p in inquiry.passages), reverse=True)
            for passage in inquiry.passages:
                assert set(passage.phrases) == graph.holds[passage.id]
    assert found > 100


def test_ranking_of_few_candidate_rows_equals_exact_cosines() -> None:
    from store.index.vectors.matrix import Vectors

    chance = np.random.default_rng(0)
    vectors = Vectors(oracle.DIM)
    vectors.extend(np.stack([oracle.vector(f"{chance.integers(100)}") for _ in range(400)]))
    view, query = vectors.view(), oracle.vector("q")
    for _ in range(50):
        few = np.zeros(400, np.bool_)
        few[chance.choice(400, 20, replace=False)] = True
        rows, scores = best_rows(view, query, few, 7, str)
        exact = {int(row): float(view.rows([int(row)])[0].astype(float) @ query) for row in np.flatnonzero(few)}
        assert rows == sorted(exact, key=lambda row: (-exact[row], str(row)))[:7]
        assert scores == pytest.approx([exact[row] for row in rows])


def test_subquery_unknown_to_the_encoder_is_matched_by_words(tmp_path: Path) -> None:
    class Unknowing(OracleEncoder):
        def encode_query(self, text: str) -> NDArray[np.float32]:
            return np.zeros(oracle.DIM, np.float32)

    said = (("am bird", "sees", "bo tree"), ("cy stone", "lies", "bo hill"))
    documents = {"d1": [("", "am bird sees bo tree", said[:1])], "d2": [("", "cy stone lies on bo hill", said[1:])]}
    with open_store(tmp_path) as store:
        store.commit(complete(store, documents, []))
        settings = DeepSettings(entities=2)
        for subquery, entities, text in (
            ("what does am bird see", {"am bird", "bo tree"}, "am bird sees bo tree"),
            ("who lies on a hill", {"cy stone", "bo hill"}, "cy stone lies on bo hill"),
        ):
            found = inquire(store.snapshot(), Unknowing(), WorkingMemory(), Concern("", subquery), settings)
            assert {entity.phrase for entity in found.entities} == entities
            assert [passage.text for passage in found.passages][:1] == [text]
            assert [{triple.subject, triple.object} for triple in found.triples][:1] == [entities]
        nothing = inquire(store.snapshot(), Unknowing(), WorkingMemory(), Concern("", "quux"), settings)
        assert (nothing.entities, nothing.triples, nothing.passages) == ((), (), ())
