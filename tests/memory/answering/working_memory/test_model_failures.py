"""Whatever a model server does at whichever call: an answer from what there is, or a clear error; never a hang."""

import asyncio
import json
from typing import Any

import pytest

import memory.llm.retry
from memory.answering.budget import Budget
from memory.answering.working_memory.deep import ask_deep
from memory.answering.working_memory.deep_answer import DeepAnswer
from memory.answering.working_memory.trace import DeepSettings
from memory.encoder.errors import EncoderServerDown
from memory.llm.chat_completion import REDUCED_MAX_TOKENS
from memory.llm.errors import ModelDown, ModelError
from memory.types import Encoder
from store.store import Store
from tests.memory.answering.working_memory.conftest import QUICK, client_of
from tests.memory.answering.working_memory.scripted_model import playing
from tests.memory.answering.working_memory.toy import ENCODER, QUESTION
from tests.memory.llm.model_server import Call, Dies, Drop, Hang, ModelServer, Raw, Status, Text

TOO_LONG = json.dumps({"error": {"message": "This model's maximum context length is 4096 tokens"}})
FAILURES = {
    "connection": Drop(),
    "5xx": Status(500),
    "429": Status(429, headers={"Retry-After": "0.01"}),
    "key": Status(401),
    "no such model": Status(404),
    "refused": Status(400),
    "too long": Status(400, TOO_LONG),
    "too large": Status(413),
    "protocol": Raw("<html>gateway</html>"),
    "empty object": Raw("{}"),
    "no JSON": Text("I would rather not."),
    "nothing": Text(""),
    "wrong schema": {"opinion": 3},
    "a list": [1, 2, 3],
    "bomb": Text("[" * 5000 + "]" * 5000),
    "cut off": Text('{"enough": fal', finish="length"),
    "dies": Dies('{"found": true, "sentences": [{"text": "Half of', 20),
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between tries are not what is tested here."""
    monkeypatch.setattr(memory.llm.retry, "FIRST_PAUSE_S", 0.01)


def failing(purpose: str, said: Any, since: int = 1) -> Any:
    """The model plays along but for one purpose, from its call number `since` on."""
    if isinstance(said, Dies) and purpose != "answer":
        said = Drop()
    return playing(lambda call, turn: said if call.purpose == purpose and turn >= since else None)


def sound(answer: DeepAnswer, model: ModelServer) -> None:
    assert answer.text
    shown = {each.rank for each in answer.citations}
    assert all(f"[{rank}]" in answer.text for rank in shown)
    assert answer.text.count("[") == sum(answer.text.count(f"[{rank}]") for rank in shown)
    assert sum(model.answered.values()) <= 12
    for step in answer.trace.steps:
        for point in step.after.points:
            assert point.passages
            assert set(point.entities) - set(point.absent)


@pytest.fixture
def deep(ask, model: ModelServer):
    def run(script: Any, **more: Any) -> DeepAnswer:
        model.answered.clear()
        answer: DeepAnswer = ask(QUESTION, script, QUICK, **more)
        sound(answer, model)
        return answer

    return run


@pytest.mark.slow
@pytest.mark.parametrize("said", FAILURES.values(), ids=FAILURES)
def test_a_judge_that_fails_ends_the_steps(deep, said) -> None:
    answer = deep(failing("judge", said))
    assert (answer.stopped, len(answer.trace.steps)) == ("model", 2)
    assert answer.written
    assert "step 1 failed" in (answer.note or "")
    assert len(answer.trace.memory.points) == 1  # two inserted and merged in the first step


@pytest.mark.slow
@pytest.mark.parametrize("said", FAILURES.values(), ids=FAILURES)
def test_answer_uses_the_passages_if_the_first_evolve_call_fails(deep, said) -> None:
    answer = deep(failing("evolve", said))
    assert (answer.stopped, len(answer.trace.steps)) == ("model", 1)
    assert answer.written
    assert answer.trace.memory.points == ()
    assert "step 0 failed" in (answer.note or "")


@pytest.mark.slow
@pytest.mark.parametrize("said", FAILURES.values(), ids=FAILURES)
def test_answer_uses_earlier_points_if_a_later_evolve_call_fails(deep, said) -> None:
    answer = deep(failing("evolve", said, since=2))
    assert (answer.stopped, len(answer.trace.steps)) == ("model", 2)
    assert answer.trace.memory == answer.trace.steps[0].after
    assert answer.written


@pytest.mark.slow
@pytest.mark.parametrize("said", FAILURES.values(), ids=FAILURES)
def test_failed_merge_leaves_points_separate_and_adds_a_note(deep, said) -> None:
    answer = deep(failing("merge", said))
    assert "stay apart" in (answer.note or "")
    assert all(change.kind == "inserted" for step in answer.trace.steps for change in step.changes)
    assert len(answer.trace.memory.points) >= 4
    assert answer.written


@pytest.mark.slow
@pytest.mark.parametrize("said", FAILURES.values(), ids=FAILURES)
def test_answer_is_composed_of_the_points_if_the_answer_call_fails(deep, said) -> None:
    answer = deep(failing("answer", said))
    assert not answer.written
    assert not answer.found
    assert answer.stopped == "steps"
    for point in answer.trace.memory.points:
        assert point.description in answer.text
    assert {id for point in answer.trace.memory.points for id in point.passages} == {c.id for c in answer.citations}
    assert "could not be written" in (answer.note or "")


@pytest.mark.slow
@pytest.mark.parametrize("said", FAILURES.values(), ids=FAILURES)
def test_question_fails_with_one_line_error_if_every_model_call_fails(ask, said) -> None:
    def script(call: Call, turn: int) -> Any:
        return Drop() if isinstance(said, Dies) and call.purpose != "answer" else said

    with pytest.raises(ModelError) as caught:
        ask(QUESTION, playing(script))
    assert str(caught.value)
    assert "\n" not in str(caught.value)


def test_passages_beyond_the_context_are_withheld_and_the_call_is_repeated(deep, model: ModelServer) -> None:
    def script(call: Call, turn: int) -> Any:
        if call.purpose == "evolve" and call.body["messages"][-1]["content"].count("«/passage»") > 4:
            return Status(400, TOO_LONG)
        return None

    answer = deep(playing(script))
    assert answer.stopped == "steps"
    first = answer.trace.steps[0].inquiries[0]
    assert len(first.passages) == 5
    assert len(first.withheld) == 2
    shown = {passage.id for passage in first.passages} - set(first.withheld)
    assert {id for change in answer.trace.steps[0].changes for id in change.point.passages} <= shown
    # Later steps begin with what fits: no call is lost on finding out again.
    assert [step.evolved.requests for step in answer.trace.steps] == [1, 1, 1]
    # Asked for a shorter answer first, the server refused as well: it is the prompt that is too long.
    assert [call.body["max_tokens"] for call in model.calls if call.purpose == "evolve"] == [
        4096,
        REDUCED_MAX_TOKENS,
        4096,
        4096,
        4096,
    ]


def test_one_bad_answer_of_a_call_costs_exactly_one_retry(ask, model: ModelServer) -> None:
    model.answered.clear()
    odd = playing(lambda call, turn: Text("Well.") if turn == 1 and call.purpose in ("judge", "merge") else None)
    answer = ask(QUESTION, odd)
    sound(answer, model)
    assert answer.stopped == "steps"
    assert answer.trace.steps[1].judged.requests == 2
    assert answer.requests == 11
    assert len(model.calls) == 11


@pytest.mark.slow
def test_a_server_that_hangs_at_a_call_does_not_hang_the_question(toy: Store) -> None:
    async def one(purpose: str, turn: int) -> DeepAnswer:
        # The call and its second try.
        hangs = playing(lambda call, at: Hang() if call.purpose == purpose and at in (turn, turn + 1) else None)
        with ModelServer(hangs) as server, client_of(server, timeout_s=2.0) as client:
            try:
                return await ask_deep(QUESTION, toy.snapshot(), ENCODER, client, QUICK)
            finally:
                await client.close()

    async def all_of_them() -> list[DeepAnswer]:
        cases = [("judge", 1), ("evolve", 1), ("evolve", 2), ("merge", 1), ("answer", 1)]
        return await asyncio.wait_for(asyncio.gather(*(one(*case) for case in cases)), 120)

    judge, first, second, merge, last = asyncio.run(all_of_them())
    assert (judge.stopped, first.stopped, second.stopped) == ("model", "model", "model")
    assert all("no answer within 2 s" in (each.note or "") for each in (judge, first, second, merge, last))
    assert not last.written
    assert last.text


def test_a_server_that_always_hangs_ends_with_the_budget_of_time(toy: Store) -> None:
    async def run() -> None:
        with ModelServer(lambda _call: Hang()) as server, client_of(server, timeout_s=600.0) as client:
            try:
                settings = DeepSettings(quick=True, steps=2, budget=Budget(seconds=1.0))
                answer = await ask_deep(QUESTION, toy.snapshot(), ENCODER, client, settings)
            finally:
                await client.close()
        assert (answer.stopped, answer.written, answer.found) == ("seconds", False, False)
        assert answer.citations
        assert "the time of 1 s is used up" in (answer.note or "")

    asyncio.run(asyncio.wait_for(run(), 120))


class Failing(Encoder):
    """An encoder whose server goes away after so many queries."""

    identity = ENCODER.identity

    def __init__(self, queries: int) -> None:
        self.left = queries

    def encode(self, texts: Any) -> Any:
        return ENCODER.encode(texts)

    def encode_query(self, text: str) -> Any:
        self.left -= 1
        if self.left < 0:
            raise EncoderServerDown("The embedding server is gone.")
        return ENCODER.encode_query(text)

    def encode_triple_query(self, text: str) -> Any:
        """Answers from the cache of queries, as an embedding server's client does."""
        return ENCODER.encode_query(text)


def test_answer_is_written_from_earlier_steps_if_the_encoder_fails(toy: Store, model: ModelServer) -> None:
    async def run(queries: int) -> DeepAnswer:
        model.script = playing()
        with client_of(model) as client:
            try:
                return await ask_deep(QUESTION, toy.snapshot(), Failing(queries), client, QUICK)
            finally:
                await client.close()

    answer = asyncio.run(run(1))
    assert (answer.stopped, answer.written) == ("model", True)
    assert "step 1 failed (The embedding server is gone.)" in (answer.note or "")
    assert answer.citations[0].points
    with pytest.raises(ModelDown, match="The embedding server is gone"):
        asyncio.run(run(0))
