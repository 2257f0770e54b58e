"""Completions that are nearly the protocol's: what is in them is used."""

import asyncio
import json
from typing import Any

import pytest

from memory.llm.client import ModelClient, ModelSettings
from memory.llm.errors import ModelDown, ModelError
from memory.openie.llm.prompts import ENTITIES_SCHEMA, entity_messages
from store.types import PassageText
from tests.memory.llm.model_server import Hang, Raw

PASSAGE = PassageText("k", "Skellan Light", "Ada Kerr built it.")
SAID = '{"named_entities": ["Ada Kerr"]}'
NO_COUNTS = ["many", None, -3, 1e30, [5]]


def _streamed(server: Any, **settings: Any) -> list[Any]:
    async def run() -> list[Any]:
        client = ModelClient(ModelSettings(server.url, "m", max_retries=0, **settings))
        try:
            return [reply async for reply in client.stream("answer", entity_messages(PASSAGE), ENTITIES_SCHEMA)]
        finally:
            await client.close()

    return asyncio.run(run())


def _whole(content: Any, **more: Any) -> Raw:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return Raw(json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], **more}))


def test_a_server_that_does_not_stream_answers_all_the_same(serve):
    server = serve(lambda call: _whole(SAID, usage={"prompt_tokens": 11, "completion_tokens": 7}))
    [reply] = _streamed(server)
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == (SAID, 11, 7)
    assert len(server.calls) == 1


def test_content_parts_of_an_answer_are_joined(serve):
    parts = [{"type": "text", "text": SAID[:9]}, {"type": "thinking", "text": None}, {"type": "text", "text": SAID[9:]}]
    assert _streamed(serve(lambda call: _whole(parts)))[-1].text == SAID


@pytest.mark.parametrize("count", NO_COUNTS)
def test_invalid_token_count_is_ignored_and_the_answer_kept(serve, count):
    server = serve(lambda call: _whole(SAID, usage={"prompt_tokens": count, "completion_tokens": 2.0}))
    reply = _streamed(server)[-1]
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == (SAID, 0, 2)


@pytest.mark.parametrize("body", ['{"error": {"message": "overloaded"}}', "[1]", '{"choices": []}', "<html>", ""])
def test_a_body_that_is_no_completion_is_an_error_of_the_server(serve, body):
    with pytest.raises(ModelError, match="model server"):
        _streamed(serve(lambda call: Raw(body)))


def test_timeout_error_is_a_sentence_with_server_and_limit(serve):
    with pytest.raises(ModelDown, match=r"^the model server 127\.0\.0\.1:\d+ gave no answer within 0\.2 s"):
        _streamed(serve(lambda call: Hang()), timeout_s=0.2)
