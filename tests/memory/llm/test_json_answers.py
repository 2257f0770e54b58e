"""What is taken for a model's answer: never what it only thought of, and nothing that it writes breaks the reading."""

import asyncio

import pytest

from memory.llm.client import ModelClient, ModelSettings
from memory.llm.errors import BadAnswer
from memory.llm.json_answers import parse, parse_partial
from memory.openie.llm.extractor import parse_entities
from memory.openie.llm.prompts import ENTITIES_SCHEMA, entity_messages
from store.types import PassageText
from tests.memory.llm.model_server import Text

DRAFT, SAID = '{"named_entities": ["Draft"]}', '{"named_entities": ["Ada Kerr"]}'
PASSAGE = PassageText("p", "Skellan Light", "Ada Kerr built it.")


def names(text):
    answer = parse(text).value
    assert isinstance(answer, dict)
    return answer["named_entities"]


@pytest.mark.parametrize(
    "text",
    [
        f"<think>Perhaps {DRAFT}? No.</think>\n\n{SAID}",
        f"Perhaps {DRAFT}? No.</think>{SAID}",
        f"{DRAFT}</think>{SAID}",
        f"<think>{DRAFT}</think>Once more.<think>{DRAFT}</think>```json\n{SAID}\n```",
        f"<think>Perhaps [[[[ {DRAFT}</think>{SAID[:-1]}",
        f"<think>{'[' * 3000}</think>{SAID}",
    ],
)
def test_json_within_thinking_tags_is_ignored(text):
    assert names(text) == ["Ada Kerr"]
    assert parse_partial(text) == {"named_entities": ["Ada Kerr"]}


@pytest.mark.parametrize("text", [f"<think>Perhaps {DRAFT}", f"Well. <think>{DRAFT}</think> <think>{DRAFT}", "<think>"])
def test_answer_that_ends_within_thinking_is_refused(text):
    with pytest.raises(BadAnswer, match="before its thinking did"):
        parse(text)
    assert parse_partial(text) is None


def test_thinking_tags_within_an_answer_are_kept():
    quoting = '{"text": "It ends with </think>, after <think>."}'
    assert (
        parse(quoting).value
        == parse(f"<think>So.</think>{quoting}").value
        == {"text": "It ends with </think>, after <think>."}
    )


@pytest.mark.parametrize(
    "text",
    [
        'A 5" pipe: ' + "[" * 3000,
        '{"a": 5" pipe ' + "[" * 100_000,
        '{"a": "5" pipe ' + '{"a":' * 3000,
        '5" ' + "[" * 3000 + "]" * 3000,
        "[" * 100_000,
    ],
)
def test_deeply_nested_brackets_raise_at_most_bad_answer(text):
    parse_partial(text)
    try:
        parse(text)
    except BadAnswer:
        return
    assert text.startswith("{")


def test_client_repeats_a_call_whose_answer_was_only_thinking(serve):
    said = [Text(f"<think>{DRAFT}"), Text('A 5" pipe: ' + "[" * 3000), Text(f"<think>{DRAFT}</think>{SAID}")]
    server = serve(lambda _call: said.pop(0))
    outcomes = []

    async def ask():
        client = ModelClient(
            ModelSettings(server.url, "m"), count_call=lambda _purpose, outcome: outcomes.append(outcome)
        )
        try:
            return await client.ask("entities", entity_messages(PASSAGE), ENTITIES_SCHEMA, parse_entities)
        finally:
            await client.close()

    assert asyncio.run(ask())[0] == ["Ada Kerr"]
    assert outcomes == ["no JSON", "bomb", "ok"]
