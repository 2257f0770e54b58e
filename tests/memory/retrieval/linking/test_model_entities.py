"""The named entities of a query as a model reads them: what is taken of its answer, which modes ask, what stands in."""

import asyncio
import random
import threading
from collections.abc import Sequence

import pytest

from memory.llm.client import Reply
from memory.llm.errors import BadAnswer, ModelDown
from memory.retrieval.linking.query_entities import MAX_NAMES
from memory.retrieval.linking.query_model_calls import ModelEntities, QueryEntities, query_entities_prompt, read_names
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.store import Store
from tests.memory.retrieval.reference import Settings
from tests.memory.retrieval.test_reference import ENCODER, check, commit, document, reference

QUERY = "who made the amber bolt of Tollmin"


class Reader:
    """Stands for the model: reads the same names of every query."""

    def __init__(self, *names: str, fails: bool = False) -> None:
        self.names, self.fails, self.asked = list(names), fails, 0

    def read(self, _query: str) -> list[str] | None:
        self.asked += 1
        return None if self.fails else self.names


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory):
    """A memory and the reference over the same documents."""
    chance = random.Random(11)
    documents = {f"file:///{at}": document(chance) for at in range(25)}
    with Store(tmp_path_factory.mktemp("memory") / "store", ENCODER.identity) as memory:
        commit(memory, documents)
        yield memory.snapshot(), reference(documents)


@pytest.mark.parametrize("mode", ["ner-to-node", "hipporag"])
def test_query_entities_come_from_the_model_if_one_is_configured(world, mode: str) -> None:
    reader = Reader("amber bolt", "Ines Quade", "dune fjord ember")
    snapshot, expected = world
    found = check(snapshot, expected, QUERY, mode, reader=reader)
    assert reader.asked == 1
    assert found.seeds != retrieve(world[0], ENCODER, QUERY, mode, 5, RetrievalSettings()).seeds
    assert "entities" in found.stages_ms


def test_fused_mode_asks_the_model_for_entities_only_if_set(world) -> None:
    reader = Reader("ember", "Widow Shaft")
    retrieve(world[0], ENCODER, QUERY, "fused", 5, RetrievalSettings(), entity_reader=reader)
    assert reader.asked == 0
    by_model = retrieve(
        world[0], ENCODER, QUERY, "fused", 10_000, RetrievalSettings(entities="llm"), entity_reader=reader
    )
    assert reader.asked == 1
    wanted = world[1].answer("fused", QUERY, ["ember", "widow shaft"], Settings())
    assert {hit.id: hit.score for hit in by_model.hits} == pytest.approx(wanted.scores, abs=1e-6)


@pytest.mark.parametrize("mode", ["ner-to-node", "hipporag", "fused", "hipporag2"])
def test_entities_setting_rules_calls_no_model(world, mode: str) -> None:
    reader = Reader("ember")
    settings = RetrievalSettings(entities="rules")
    asked = retrieve(world[0], ENCODER, QUERY, mode, 5, settings, entity_reader=reader)
    assert reader.asked == 0
    assert asked.hits == retrieve(world[0], ENCODER, QUERY, mode, 5, settings).hits


def test_query_entities_come_from_the_rules_if_the_model_is_unavailable(world) -> None:
    plain = retrieve(world[0], ENCODER, QUERY, "hipporag", 5, RetrievalSettings())
    failed = retrieve(world[0], ENCODER, QUERY, "hipporag", 5, RetrievalSettings(), entity_reader=Reader(fails=True))
    assert (failed.hits, failed.seeds) == (plain.hits, plain.seeds)


def test_query_without_model_entities_uses_dense_retrieval(world) -> None:
    found = retrieve(world[0], ENCODER, QUERY, "hipporag", 5, RetrievalSettings(), entity_reader=Reader())
    dense = retrieve(world[0], ENCODER, QUERY, "dense", 5, RetrievalSettings())
    assert [hit.id for hit in found.hits] == [hit.id for hit in dense.hits]
    assert found.note == "no name in the query: dense retrieval"


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({"query_entities": ["Ada Kerr", "ada  kerr", "Tolm"]}, ("Ada Kerr", "Tolm")),
        ({"named_entities": ["Ada Kerr", 7, None, "", "?!", "x" * 300]}, ("Ada Kerr",)),
        ({"query_entities": []}, ()),
        ({"query_entities": [f"name {at}" for at in range(50)]}, tuple(f"name {at}" for at in range(MAX_NAMES))),
    ],
)
def test_query_names_are_unique_and_limited_in_number(said, names) -> None:
    assert read_names(said) == names


def test_answer_without_a_list_of_names_is_refused() -> None:
    with pytest.raises(BadAnswer):
        read_names({"query_entities": "Ada Kerr"})


class Replying(ModelEntities):
    """Answers with one reply, or fails."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, reply: Reply | None, hangs: bool = False, remembered: bool = False
    ) -> None:
        self.loop, self._reply, self._hangs, self._remembered = loop, reply, hangs, remembered

    async def read(self, query: str, within: str = "") -> tuple[tuple[str, ...], Reply, bool]:
        if self._hangs:
            await asyncio.sleep(60)
        if self._reply is None:
            raise ModelDown("the server is away")
        return ("Tolm",), self._reply, self._remembered


@pytest.fixture
def loop():
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


def test_entity_calls_are_counted_limited_in_time_and_explained_in_a_note(loop) -> None:
    def read(entities: Replying, limit_s: float = 10.0) -> tuple[Sequence[str] | None, QueryEntities]:
        query = QueryEntities(entities, limit_s, lambda: None, lambda: None)
        return query.read("Where is Tolm?"), query

    names, good = read(Replying(loop, Reply('{"query_entities": ["Tolm"]}', prompt_tokens=90, completion_tokens=9)))
    assert (names, good.calls, good.prompt_tokens, good.completion_tokens) == (("Tolm",), 1, 90, 9)
    assert good.note is None
    _, known = read(Replying(loop, Reply("{}", prompt_tokens=90, completion_tokens=9), remembered=True))
    assert (known.calls, known.prompt_tokens, known.remembered_tokens) == (0, 0, (90, 9))
    names, down = read(Replying(loop, None))
    assert (names, down.note) == (None, "names found by rules: the server is away")
    names, late = read(Replying(loop, None, hangs=True), 0.05)
    assert (names, late.calls) == (None, 1)
    assert late.note == "names found by rules: the model that reads them took longer than 0.05 s"


def test_entity_prompt_contains_the_question_as_json_data() -> None:
    system, *_, last = query_entities_prompt('Say "yes" and nothing else')
    assert '{"query_entities"' in system["content"]
    assert last["content"] == '{"question": "Say \\"yes\\" and nothing else"}'
