"""What a server does wrong at first costs nothing for good: the JSON schema is asked for again, a cut answer once more."""

import asyncio
from collections import Counter

import pytest

from memory.llm.chat_completion import ModelSettings
from memory.llm.client import ModelClient
from memory.llm.errors import ModelError
from memory.openie.llm.extractor import parse_triples
from memory.openie.llm.prompts import TRIPLES_SCHEMA, triple_messages
from store.types import PassageText
from tests.memory.llm.model_server import LOADING, ModelServer, Status, Text

GOOD = [["ada kerr", "built", "skellan light"]]
PASSAGE = PassageText("k", "Skellan Light", "Ada Kerr built it.")


@pytest.fixture
def ask(monkeypatch):
    """Asks a server that answers as the script says, so many times; the results, the outcomes and the calls' formats."""
    monkeypatch.setattr("memory.llm.retry.FIRST_PAUSE_S", 0.0)

    def asks(script, times=1, **settings):
        outcomes: Counter[str] = Counter()

        async def work(url):
            client = ModelClient(
                ModelSettings(url, "m", **settings), lambda _purpose, outcome: outcomes.update([outcome])
            )
            found: list[object] = []
            try:
                for _ in range(times):
                    try:
                        found.append(
                            await client.ask("triples", triple_messages(PASSAGE, ()), TRIPLES_SCHEMA, parse_triples)
                        )
                    except ModelError as error:
                        found.append(error)
            finally:
                await client.close()
            return found

        with ModelServer(script) as server:
            return asyncio.run(work(server.url)), outcomes, [call.format for call in server.calls]

    return asks


def in_turn(*said):
    rest = list(said)
    return lambda _call: rest.pop(0) if rest else {"triples": GOOD}


def test_two_failures_before_the_first_answer_cost_the_schema_for_four_answers(ask):
    _, outcomes, formats = ask(in_turn(Status(500), Status(500)), times=8)
    assert formats == ["json_schema"] * 2 + ["json_object"] * 4 + ["json_schema"] * 4
    assert outcomes == {"5xx": 2, "ok": 8}


def test_failures_of_a_server_that_loads_its_model_cost_no_schema(ask):
    loading = Status(503, LOADING)
    _, outcomes, formats = ask(in_turn(loading, loading, loading))
    assert formats == ["json_schema"] * 4
    assert outcomes == {"5xx": 3, "ok": 1}


def test_server_that_fails_with_a_schema_is_asked_for_one_ever_less_often(ask):
    _, outcomes, formats = ask(
        lambda call: Status(500) if call.format == "json_schema" else {"triples": GOOD}, times=4 + 8 + 16 + 1
    )
    assert [at for at, format in enumerate(formats) if format == "json_schema"] == [0, 1, 6, 15, 32]
    assert outcomes == {"5xx": 5, "ok": 29}


@pytest.mark.parametrize("status", [400, 500])
def test_a_schema_that_is_refused_in_words_is_given_up_for_good(ask, status):
    refusal = Status(status, '{"error": {"message": "response_format json_schema is not supported"}}')
    _, _, formats = ask(lambda call: refusal if call.format == "json_schema" else {"triples": GOOD}, times=12)
    assert formats == ["json_schema"] + ["json_object"] * 12


def test_half_an_answer_is_asked_for_once_more_and_counted(ask):
    half = Text('{"triples": [["ada kerr", "built", "skellan light"], ["half a')
    [(triples, reply)], outcomes, _ = ask(in_turn(half))
    assert triples == GOOD
    assert not reply.cut
    assert outcomes == {"incomplete": 1, "ok": 1}
    assert reply.completion_tokens == 10, "both answers were paid for"


def test_an_answer_that_stays_half_is_taken_as_cut_off(ask):
    half = Text('{"triples": [["ada kerr", "built", "skellan light"], ["half a')
    [(triples, reply)], outcomes, formats = ask(in_turn(half, half, half))
    assert triples[0] == GOOD[0]
    assert reply.cut
    assert outcomes == {"incomplete": 2}
    assert len(formats) == 2


@pytest.mark.parametrize(
    "whole",
    [
        '{"triples": [["ada kerr", "built" "skellan light"]]}',
        '{triples: [["ada kerr", "built", "skellan light"]]}',
        '{"triples": [["ada kerr", "built", "skellan light",],]}',
    ],
)
def test_a_whole_answer_that_is_nearly_json_is_repaired_and_not_asked_for_again(ask, whole):
    [(triples, reply)], outcomes, _ = ask(in_turn(Text(whole)))
    assert (triples, reply.cut, outcomes) == (GOOD, False, {"repaired": 1})
