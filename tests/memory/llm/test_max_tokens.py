"""A server whose context holds little is asked for shorter answers, and what is paid for answers of no use is told."""

import asyncio
import json

import pytest

from memory.llm.chat_completion import DEFAULT_MAX_TOKENS, REDUCED_MAX_TOKENS
from memory.llm.client import ModelClient, ModelSettings
from memory.llm.errors import BadAnswer, ModelDown, ModelRefused
from memory.llm.limiter import Limiter
from memory.llm.response_format import is_too_long
from memory.openie.llm.extractor import LLMExtractor, parse_entities
from memory.openie.llm.prompts import ENTITIES_SCHEMA, entity_messages
from store.types import PassageText
from tests.memory.llm.model_server import Call, Status, Text, obedient

CONTEXT = 4096
SHORT = PassageText("k", "Skellan Light", "Ada Kerr built it.")
LONG = PassageText("l", "Grid", "Station feeds Valley daily. " * 600)
CUT = Text("Here you are", finish="length")


def prompt_tokens(call: Call) -> int:
    return sum(len(message["content"]) for message in call.body["messages"]) // 4


def narrow(call: Call):
    """Refuses as vLLM does where prompt and answer do not fit into its context together."""
    asked = call.body["max_tokens"]
    if prompt_tokens(call) + asked <= CONTEXT:
        return obedient(call)
    total = prompt_tokens(call) + asked
    said = (
        f"This model's maximum context length is {CONTEXT} tokens. However, you requested {total} tokens "
        f"({prompt_tokens(call)} in the messages, {asked} in the completion). Please reduce the length of the messages."
    )
    return Status(400, json.dumps({"object": "error", "message": said, "type": "BadRequestError", "code": 400}))


def with_client(server, work, **settings):
    async def run():
        client = ModelClient(ModelSettings(server.url, "m", **settings))
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run())


def test_answer_limit_beyond_the_servers_context_is_lowered_for_later_passages(
    serve,
):
    server = serve(narrow)

    async def read(client):
        extractor = LLMExtractor(client, Limiter(4))
        found = [await extractor.read(each) for each in (LONG, SHORT)]
        learned = len(server.calls)
        for each in (LONG, SHORT):
            await extractor.read(each)
        return found, learned

    (long, short), learned = with_client(server, read)
    assert ("station", "feeds", "valley") in long.triples
    assert ("ada", "kerr", "built") in short.triples
    asked = [call.body["max_tokens"] for call in server.calls]
    assert set(asked[:learned]) == {DEFAULT_MAX_TOKENS, REDUCED_MAX_TOKENS}
    assert set(asked[learned:]) == {REDUCED_MAX_TOKENS}


def test_token_limit_is_not_lowered_if_short_prompts_fit(serve):
    server = serve(lambda call: narrow(call) if "Station" in call.passage else obedient(call))

    async def read(client):
        extractor = LLMExtractor(client, Limiter(4))
        return [await extractor.read(each) for each in (LONG, SHORT)]

    with_client(server, read)
    assert [call.body["max_tokens"] for call in server.calls if "Kerr" in call.passage] == [DEFAULT_MAX_TOKENS] * 2


def test_prompt_that_fills_the_context_is_refused_after_one_retry(serve):
    server = serve(narrow)
    messages = [{"role": "user", "content": "word " * 4_000}]

    async def ask(client):
        with pytest.raises(ModelRefused) as refused:
            await client.ask("entities", messages, ENTITIES_SCHEMA, parse_entities)
        assert refused.value.too_long

    with_client(server, ask)
    assert [call.body["max_tokens"] for call in server.calls] == [DEFAULT_MAX_TOKENS, REDUCED_MAX_TOKENS]


def test_token_limit_of_a_streamed_answer_is_lowered_to_the_context(serve):
    server = serve(narrow)

    async def ask(client):
        return [reply.text async for reply in client.stream("answer", entity_messages(SHORT), ENTITIES_SCHEMA)][-1]

    assert json.loads(with_client(server, ask))["named_entities"]
    assert [call.body["max_tokens"] for call in server.calls] == [DEFAULT_MAX_TOKENS, REDUCED_MAX_TOKENS]


@pytest.mark.parametrize(
    ("answers", "kind", "answered"),
    [
        ([CUT], ModelRefused, 1),
        ([Text("I would rather not.")] * 3, BadAnswer, 3),
        ([Text("I would rather not."), Status(400)], ModelRefused, 1),
        ([Text("I would rather not.")] + [Status(500)] * 3, ModelDown, 1),
        ([Status(400)] * 3, ModelRefused, 0),
    ],
    ids=["cut off", "no use", "no use, then refused", "no use, then down", "refused"],
)
def test_error_includes_the_tokens_of_earlier_tries(serve, monkeypatch, answers, kind, answered):
    monkeypatch.setattr("memory.llm.retry.FIRST_PAUSE_S", 0.0)
    left = list(answers)
    server = serve(lambda _call: left.pop(0) if left else Status(400))

    async def ask(client):
        with pytest.raises(kind) as failed:
            await client.ask("entities", entity_messages(SHORT), ENTITIES_SCHEMA, parse_entities)
        return failed.value

    error = with_client(server, ask, max_retries=2)
    assert error.completion_tokens == 5 * answered
    assert error.prompt_tokens == prompt_tokens(server.calls[0]) * answered


def test_extraction_counts_tokens_of_answers_that_were_cut_off(serve):
    passage = PassageText("s", "Grid", " ".join(f"Station{n} feeds Valley{n} daily." for n in range(60)))
    server = serve(lambda call: CUT if len(call.passage) > 1_000 else obedient(call))

    async def read(client):
        return await LLMExtractor(client, Limiter(4)).read(passage)

    found = with_client(server, read)
    assert found.completion_tokens == 5 * len(server.calls)
    assert found.prompt_tokens == sum(map(prompt_tokens, server.calls))


@pytest.mark.parametrize(
    "complaint",
    [
        "the request exceeds the available context size, try increasing it",  # llama.cpp
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",  # vLLM
        "Requested tokens (5013) exceed context window of 4096",  # llama-cpp-python
        "context_length_exceeded",  # OpenAI
    ],
)
def test_too_long_errors_of_different_servers_are_recognised(complaint):
    assert is_too_long(complaint)
