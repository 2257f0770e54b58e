"""A slow server is waited for as long as it makes progress, and an answer that repeats itself is ended."""

import asyncio
import json
import threading

import pytest

from memory.llm.client import ModelClient, ModelSettings
from memory.llm.errors import ModelDown
from memory.openie.llm.extractor import parse_entities, parse_triples
from memory.openie.llm.prompts import ENTITIES_SCHEMA, TRIPLES_SCHEMA, entity_messages, triple_messages
from store.types import PassageText
from tests.memory.llm.model_server import Hang, Pauses, Text

PASSAGE = PassageText("k", "Skellan Light", "Ada Kerr built Skellan Light in 1868.")
NAMES = [f"Name {n}" for n in range(12)]


def with_client(server, timeout_s, work):
    tokens = []

    async def run():
        settings = ModelSettings(server.url, "m", timeout_s=timeout_s, max_retries=1)
        client = ModelClient(settings, count_tokens=lambda *counts: tokens.append(counts))
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(run()), tokens


def names(client):
    return client.ask("entities", entity_messages(PASSAGE), ENTITIES_SCHEMA, parse_entities)


def test_slow_answer_is_streamed_and_limited_by_progress_after_a_timeout(serve):
    server = serve(lambda call: {"named_entities": NAMES} if call.body.get("stream") else Hang(), piece_s=0.2)
    (found, reply), tokens = with_client(server, 1.5, names)  # the whole answer takes longer
    assert found == NAMES
    assert (reply.prompt_tokens, reply.completion_tokens) == (11, 7)
    assert tokens == [("entities", 11, 7)]
    assert server.calls[-1].body["stream"]


def test_a_stream_without_progress_times_out(serve):
    never = threading.Event()
    said = Pauses(json.dumps({"named_entities": NAMES}), 24, never)
    server = serve(lambda call: said if call.body.get("stream") else Hang())
    with pytest.raises(ModelDown, match=r"made no progress for 0\.3 s"):
        with_client(server, 0.3, names)
    never.set()


def test_an_answer_that_repeats_itself_is_ended_and_its_valid_part_is_kept(serve):
    endless = '{"triples": [["Ada Kerr", "built", "Skellan Light"]' + ', ["Kerr", "is", "Ada Kerr"]' * 2000
    server = serve(lambda call: Text(endless, "length") if call.body.get("stream") else Hang())

    def triples(client):
        messages = triple_messages(PASSAGE, ("Ada Kerr",))
        return client.ask("triples", messages, TRIPLES_SCHEMA, parse_triples)

    (found, reply), tokens = with_client(server, 0.5, triples)
    assert found[:2] == [["Ada Kerr", "built", "Skellan Light"], ["Kerr", "is", "Ada Kerr"]]
    assert reply.cut and len(reply.text) < 4000
    assert len(tokens) == 1 and 0 < tokens[0][2] < 2000, "the broken-off answer is counted by an estimate"


def test_repeating_answer_is_streamed_and_ended_the_second_time(serve):
    endless = '{"named_entities": ["Ada Kerr"' + ', "Orrey", "Tolm"' * 3000
    server = serve(lambda _call: Text(endless, "length"))

    async def twice(client):
        return [await names(client) for _ in range(2)]

    (first, second), _ = with_client(server, 60.0, twice)
    assert [bool(call.body.get("stream")) for call in server.calls] == [False, True]
    assert first[0][:3] == second[0][:3] == ["Ada Kerr", "Orrey", "Tolm"]
    assert first[1].cut and second[1].cut
    assert len(second[1].text) < 4000 < len(first[1].text)


def test_truncated_answer_without_repetition_starts_no_streaming(serve):
    said = '{"named_entities": [' + ", ".join(f'"Name {n}"' for n in range(2000))
    server = serve(lambda _call: Text(said, "length"))

    async def twice(client):
        return [await names(client) for _ in range(2)]

    with_client(server, 60.0, twice)
    assert not any(call.body.get("stream") for call in server.calls)


def test_answer_of_blanks_does_not_split_the_passage(serve):
    """Models in JSON mode may write blanks until the limit; a shorter passage would not help."""
    server = serve(lambda _call: Text("{" + " \n" * 2000, "length"))
    outcomes = []

    async def run():
        client = ModelClient(ModelSettings(server.url, "m", max_retries=1), lambda *call: outcomes.append(call[1]))
        try:
            await names(client)
        finally:
            await client.close()

    with pytest.raises(Exception, match="named_entities") as raised:
        asyncio.run(run())
    assert type(raised.value).__name__ == "BadAnswer"
    assert outcomes == ["wrong schema"] * 2
