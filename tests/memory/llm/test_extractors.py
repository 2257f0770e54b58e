"""What the two extractors by a model make of a passage: the same, whatever the model's answers are like.

vLLM needs a card; in its place stands a module that answers by the script of the tests' model server.
"""

import asyncio
import json
import sys
from types import SimpleNamespace

import pytest

from memory.llm.client import ModelClient, ModelSettings
from memory.llm.errors import BadAnswer, ModelRefused
from memory.llm.limiter import Limiter
from memory.openie.llm import extractor
from memory.openie.llm.extractor import LLMExtractor
from memory.openie.llm.vllm import VLLMExtractor
from store.types import PassageText
from tests.memory.llm.model_server import Call, Text, obedient

STATIONS = PassageText("s", "Grid", " ".join(f"Station{n} feeds Valley{n} daily." for n in range(60)))
LONG = PassageText("l", "Grid", " ".join(f"Station{n} feeds Valley{n} daily." for n in range(700)))
SHORT = PassageText("k", "Skellan Light", "Ada Kerr built it.")


def over_http(serve, script, passage):
    server = serve(script)

    async def read():
        client = ModelClient(ModelSettings(server.url, "m", max_retries=3))
        try:
            return await LLMExtractor(client, Limiter(4)).read(passage)
        finally:
            await client.close()

    return asyncio.run(read())


@pytest.fixture
def in_bulk(monkeypatch):
    """`in_bulk(script, passages)`: the extractions, what was told unread, and how many conversations there were."""

    def run(script, passages, listen=True):
        asked = []

        def answer(messages, options):
            purpose = "entities" if '"named_entities"' in messages[0]["content"] else "triples"
            last = messages[-1]["content"]
            quoted = last[last.index("«passage»\n") + 10 : last.index("\n«/passage»")]
            asked.append(quoted)
            said = script(Call(purpose, quoted, {"messages": messages, **options}, {}, 0.0))
            text = said if isinstance(said, Text) else Text(json.dumps(said))
            output = SimpleNamespace(text=text.content, finish_reason=text.finish, token_ids=[0] * 5)
            return SimpleNamespace(outputs=[output], prompt_token_ids=[0] * 10)

        class LLM:
            def __init__(self, **_options):
                pass

            def chat(self, conversations, options, use_tqdm):
                return [answer(each, options) for each in conversations]

        decoding = SimpleNamespace(StructuredOutputsParams=lambda **options: options)
        fake = SimpleNamespace(LLM=LLM, SamplingParams=lambda **options: options, sampling_params=decoding)
        monkeypatch.setitem(sys.modules, "vllm", fake)
        unread: dict[str, object] = {}
        extractor = VLLMExtractor("m", 0.0)
        found = extractor.extract(passages, unread.__setitem__) if listen else extractor.extract(passages)
        return found, unread, len(asked)

    return run


def cut_triples(call):
    title = call.passage.partition("\n")[0]
    return Text(f'{{"triples": [["{title}", "links to", "beta two"], ["cut", "off", "ha', finish="length")


def cut_where_long(call):
    if call.purpose == "triples" and len(call.passage) > 700:
        return cut_triples(call)
    return obedient(call)


def always_cut(call):
    if call.purpose == "triples":
        return cut_triples(call)
    return Text('{"named_entities": ["Ada Kerr", "Skell', finish="length")


def cut_before_anything(call):
    return Text('{"tri', finish="length") if len(call.passage) > 700 else obedient(call)


def half_an_emoji(call):
    return {"named_entities": ["Ada Kerr", "Smile \ud83d"]} if call.purpose == "entities" else obedient(call)


@pytest.mark.parametrize(
    ("script", "passage"),
    [
        (obedient, SHORT),
        (obedient, LONG),
        (cut_where_long, STATIONS),
        (always_cut, SHORT),
        (cut_before_anything, STATIONS),
        (half_an_emoji, SHORT),
    ],
)
def test_http_and_bulk_extraction_give_equal_results(serve, in_bulk, script, passage):
    single = over_http(serve, script, passage)
    [bulk], unread, _ = in_bulk(script, [passage])
    assert (bulk.extractor, bulk.entities, bulk.triples) == (single.extractor, single.entities, single.triples)
    assert bulk.triples
    assert unread == {}
    assert not any(part.startswith("ha") or part == "skell" for triple in bulk.triples for part in triple)
    assert "skell" not in bulk.entities


def test_bulk_extraction_keeps_passage_order_and_joins_pieces(in_bulk):
    found, _, conversations = in_bulk(obedient, [SHORT, LONG, STATIONS])
    assert [each.passage for each in found] == ["k", "l", "s"]
    assert conversations == 2 * (1 + len(extractor.split_passage(LONG)) + 1)
    assert [each.prompt_tokens for each in found] == [20, 20 * len(extractor.split_passage(LONG)), 20]
    assert len(found[1].triples) > len(found[2].triples)


@pytest.mark.parametrize("purpose", ["entities", "triples"])
def test_passage_with_unusable_answers_fails_alone(serve, in_bulk, purpose):
    def script(call):
        return Text("I would rather not.") if call.purpose == purpose and "Kerr" in call.passage else obedient(call)

    with pytest.raises((BadAnswer, ModelRefused)) as refused:
        over_http(serve, script, SHORT)
    found, unread, _ = in_bulk(script, [SHORT, STATIONS])
    assert unread == {"k": str(refused.value)}
    assert [each.passage for each in found] == ["s"]
    assert found[0].triples
    both, _, _ = in_bulk(script, [SHORT, STATIONS], listen=False)
    assert [bool(each.triples) for each in both] == [False, True], "who hears of no failure is given no endless work"


def test_unusable_answer_is_requested_again(in_bulk):
    said = ["Hm.", "Hm."]
    found, unread, conversations = in_bulk(
        lambda call: Text(said.pop()) if said and call.purpose == "triples" else obedient(call), [SHORT]
    )
    assert found[0].triples
    assert (unread, conversations, found[0].completion_tokens) == ({}, 4, 20)


def test_unfounded_and_repeated_triples_are_dropped_and_counted(serve):
    said = [
        ["Ada Kerr", "built", "Skellan Light"],
        ["ADA KERR", "built", "Skellan-Light"],
        ["Paris", "is capital of", "France"],
        ["engineer", "is", "Ada Kerr"],
        ["Kerr", "wrote", "poems"],
        ["Err", "is part of", "Kerry"],
    ]
    server = serve(lambda call: {"triples": said} if call.purpose == "triples" else obedient(call))
    dropped: list[tuple[str, int]] = []

    async def read():
        client = ModelClient(ModelSettings(server.url, "m"))
        try:
            return await LLMExtractor(client, Limiter(4), lambda *why: dropped.append(why)).read(SHORT)
        finally:
            await client.close()

    assert [triple[0] for triple in asyncio.run(read()).triples] == ["ada kerr", "engineer", "kerr"]
    assert dict(dropped) == {"repeated": 1, "ungrounded": 2}


def test_phrases_within_words_of_other_scripts_are_grounded():
    passage = PassageText("z", "", "阿达·克尔于1868年建造了灯塔。")
    found = extractor.build_extraction(passage, "llm/m", (), [["灯塔", "建于", "1868年"]], lambda *_: None, 0, 0, 0.0)
    assert len(found.triples) == 1


def test_truncated_endless_list_keeps_its_valid_triples_without_splitting(serve, in_bulk):
    endless = [["Ada Kerr", "built light number", str(n)] for n in range(300)]
    text = '{"triples": ' + json.dumps(endless)[:-1] + ', ["Ada Kerr", "built li'

    def script(call):
        return Text(text, finish="length") if call.purpose == "triples" else obedient(call)

    passage = PassageText("k", "Skellan Light", "Ada Kerr built it. " * 25)
    single = over_http(serve, script, passage)
    [bulk], _, asked = in_bulk(script, [passage])
    assert len(single.triples) == 300
    assert bulk.triples == single.triples
    assert asked == 2
