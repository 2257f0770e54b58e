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


def test_schema_is_dropped_for_four_answers_after_two_failures(ask):
    _, outcomes, formats = ask(in_turn(Status(500), Status(500)), times=8)
    assert formats == ["json_schema"] * 2 + ["json_object"] * 4 + ["json_schema"] * 4
    assert outcomes == {"5xx": 2, "ok": 8}


def test_failures_of_a_server_that_loads_its_model_cost_no_schema(ask):
    loading = Status(503, LOADING)
    _, outcomes, formats = ask(in_turn(loading, loading, loading))
    assert formats == ["json_schema"] * 4
    assert outcomes == {"5xx": 3, "ok": 1}


def test_schema_is_retried_with_growing_intervals_after_failures(ask):
    _, outcomes, formats = ask(
        lambda call: Status(500) if call.format == "json_schema" else {"triples": GOOD}, times=4 + 8 + 16 + 1
    )
    assert [at for at, format in enumerate(formats) if format == "json_schema"] == [0, 1, 6, 15, 32]
    assert outcomes == {"5xx": 5, "ok": 29}


@pytest.mark.parametrize("status", [400, 500])
def test_schema_that_the_server_reports_as_unsupported_is_not_retried(ask, status):
    refusal = Status(status, '{"error": {"message": "response_format json_schema is not supported"}}')
    _, _, formats = ask(lambda call: refusal if call.format == "json_schema" else {"triples": GOOD}, times=12)
    assert formats == ["json_schema"] + ["json_object"] * 12


def test_incomplete_answer_is_requested_again_and_counted(ask):
    half = Text('{"triples": [["ada kerr", "built", "skellan light"], ["half a')
    [(triples, reply)], outcomes, _ = ask(in_turn(half))
    assert triples == GOOD
    assert not reply.cut
    assert outcomes == {"incomplete": 1, "ok": 1}
    assert reply.completion_tokens == 10, "both answers were paid for"


def test_answer_that_is_incomplete_twice_is_treated_as_truncated(ask):
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
def test_complete_answer_of_nearly_valid_json_is_repaired_without_a_retry(ask, whole):
    [(triples, reply)], outcomes, _ = ask(in_turn(Text(whole)))
    assert (triples, reply.cut, outcomes) == (GOOD, False, {"repaired": 1})
