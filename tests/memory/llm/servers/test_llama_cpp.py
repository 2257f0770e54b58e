"""llama.cpp's own server with a model of random weights: JSON bound by a grammar, streams, the end of its context."""

import asyncio
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from memory.llm.client import ModelClient, ModelSettings
from memory.llm.errors import BadAnswer, ModelDown, ModelError, ModelRefused
from memory.llm.limiter import Limiter
from memory.openie.llm.extractor import LLMExtractor, parse_entities, parse_triples
from memory.openie.llm.prompts import ENTITIES_SCHEMA, TRIPLES_SCHEMA, entity_messages, triple_messages
from store.types import PassageText
from tests.e2e.real_hippod import Daemon
from tests.memory.llm.servers.llama_server import PYTHON, llama_server, needs_llama_cpp

pytestmark = [pytest.mark.model_server, needs_llama_cpp]
CONTEXT = 4096
PASSAGE = PassageText("k", "Skellan Light", "Ada Kerr built Skellan Light in 1868.")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    model = folder / "random.gguf"
    subprocess.run([str(PYTHON), str(Path(__file__).with_name("random_gguf.py")), str(model)], check=True)
    with llama_server(model, folder / "log", CONTEXT) as address:
        yield address


def asking(url, work, **settings):
    """What `work(client)` gives, and the outcomes of its calls."""
    outcomes: list[tuple[str, str]] = []

    async def run():
        made = ModelSettings(url, "random", **{"timeout_s": 120.0, **settings})
        client = ModelClient(made, lambda purpose, outcome: outcomes.append((purpose, outcome)))
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run()), outcomes


def test_llama_server_answers_a_probe(url):
    _, outcomes = asking(url, lambda client: client.probe())
    assert outcomes == [("probe", "ok")]


def test_every_answer_is_bound_to_json_or_cut_off(url):
    """Random weights seldom end a list."""

    async def work(client):
        found = []
        for messages, schema, read in (
            (entity_messages(PASSAGE), ENTITIES_SCHEMA, parse_entities),
            (triple_messages(PASSAGE, ("Ada Kerr",)), TRIPLES_SCHEMA, parse_triples),
        ):
            try:
                await client.ask("entities", messages, schema, read, max_tokens=200)
            except ModelRefused as error:
                assert error.too_long
                found.append(error.prompt_tokens)
            except BadAnswer as error:
                assert error.kind == "wrong schema"
                found.append(error.prompt_tokens)
        return found

    prompts, outcomes = asking(url, work)
    assert all(tokens > 100 for tokens in prompts)
    assert {outcome for _, outcome in outcomes} <= {"ok", "cut off", "wrong schema"}


def test_answer_arrives_in_growing_parts(url):
    async def work(client):
        return [r async for r in client.stream("answer", entity_messages(PASSAGE), ENTITIES_SCHEMA, max_tokens=60)]

    replies, outcomes = asking(url, work)
    assert len(replies) > 5
    assert all(after.text.startswith(before.text) for before, after in pairwise(replies))
    assert replies[-1].text.lstrip().startswith("{")
    assert outcomes == [("answer", "ok")]


def test_a_prompt_beyond_its_context_is_refused_as_too_long(url):
    async def work(client):
        with pytest.raises(ModelRefused) as refused:
            await client.ask("entities", [{"role": "user", "content": "word " * 2000}], ENTITIES_SCHEMA, parse_entities)
        return refused.value.too_long

    assert asking(url, work)[0]


def test_cancelled_call_does_not_block_the_next_call(url):
    async def work(client):
        call = asyncio.ensure_future(client.ask("entities", entity_messages(PASSAGE), ENTITIES_SCHEMA, parse_entities))
        await asyncio.sleep(1.0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await client.probe()

    assert asking(url, work)[1][-1] == ("probe", "ok")


def test_extraction_succeeds_or_fails_without_server_errors(url):
    async def work(client):
        try:
            return await LLMExtractor(client, Limiter(2)).read(PASSAGE)
        except ModelDown:
            raise
        except ModelError as error:
            return error

    found, outcomes = asking(url, work)
    assert found is not None
    assert outcomes
    assert not {outcome for _, outcome in outcomes} & {"5xx", "protocol", "connection", "timeout"}


@pytest.mark.daemon
def test_daemon_filters_and_answers_with_llama_server(url, tmp_path):
    llm = {"base_url": url, "model": "random", "timeout_s": 120, "max_retries": 1}
    with Daemon(tmp_path, folders=(), llm=llm, retrieval={"filter_timeout_s": 60.0}) as daemon:
        daemon.add(
            {"id": "1", "title": "Light", "text": PASSAGE.text, "triples": [["Ada Kerr", "built", "Skellan Light"]]}
        )
        daemon.wait()
        answer = daemon.ask("POST", "/v1/query", json={"query": "Who built the light?", "filter": "llm"}, timeout=100)
        assert answer["passages"]
        for more in ([], ["--deep", "--steps", "1"]):
            ran = daemon.ctl("--json", "ask", "Who built the light?", *more)
            assert ran.code in (0, 1), ran
            assert ran.json["answer" if ran.code == 0 else "detail"]
