"""Answers that end at their length limit, and tries that come to nothing: no half is kept, and all that was paid is counted."""

import json
from typing import Any

import pytest

from memory.answering.answer_form import AnswerForm
from memory.answering.budget import Budget
from memory.answering.working_memory.deep_answer import DeepAnswer
from memory.answering.working_memory.trace import DeepSettings, ModelCall
from memory.llm.chat_completion import DEFAULT_MAX_TOKENS, prompt_tokens
from tests.memory.answering.working_memory.prompt_reader import Prompt
from tests.memory.answering.working_memory.replay import every_call, replay_step
from tests.memory.answering.working_memory.scripted_model import playing
from tests.memory.answering.working_memory.toy import QUESTION
from tests.memory.llm.model_server import Call, ModelServer, Status, Text

ONE_STEP = DeepSettings(quick=True, steps=0)


def half(value: Any, end: str) -> Text:
    """The JSON of `value` up to and with `end`, where the limit cut it off."""
    text = json.dumps(value)
    assert end in text
    return Text(text[: text.index(end) + len(end)], finish="length")


def at(purpose: str, said: Any) -> Any:
    return playing(lambda call, turn: said(call) if call.purpose == purpose else None)


def refused(answer: DeepAnswer) -> list[str]:
    return [each.why for step in answer.trace.steps for each in step.refused]


def replayed(answer: DeepAnswer) -> bool:
    return all(replay_step(step, QUESTION, answer.trace.settings) == step for step in answer.trace.steps)


def test_truncated_merge_replaces_no_points(ask) -> None:
    whole = {"points": [1, 2], "description": "Both of them together"}
    answer = ask(QUESTION, at("merge", lambda _call: half({"merges": [whole]}, "Both of")), ONE_STEP)
    assert [point.description for point in answer.trace.memory.points] == ["Point 1.1.", "Point 1.2."]
    assert refused(answer) == ["cut off"]
    assert replayed(answer)


def test_merges_before_a_truncated_merge_are_applied(ask) -> None:
    def three_points(call: Call, turn: int) -> Any:
        prompt = Prompt(call)
        if call.purpose == "evolve":
            entity, passage = next(iter(prompt.entities)), next(iter(prompt.passages))
            inserts = [prompt.insert(f"{name}.", [entity], [passage]) for name in "ABCD"]
            return {"updates": [], "inserts": inserts}
        if call.purpose == "merge":
            merges = [{"points": [1, 2], "description": "AB."}, {"points": [3, 4], "description": "CD, which is"}]
            return half({"merges": merges}, "CD, wh")
        return None

    answer = ask(QUESTION, playing(three_points), ONE_STEP)
    assert [point.description for point in answer.trace.memory.points] == ["AB.", "C.", "D."]
    assert replayed(answer)


@pytest.mark.parametrize("order", [["updates", "inserts"], ["inserts", "updates"]])
def test_the_last_change_of_a_cut_off_answer_is_not_taken(ask, order: list[str]) -> None:
    def instead(call: Call, turn: int) -> Any:
        if call.purpose != "evolve" or turn == 1:
            return None
        prompt = Prompt(call)
        entity, passage = next(iter(prompt.entities)), next(iter(prompt.passages))
        changes = {
            "updates": [
                {"point": 1, "description": "One, more fully.", "passages": []},
                {"point": 2, "description": "Two, more fully.", "passages": []},
            ],
            "inserts": [prompt.insert(f"{name}, all that is new.", [entity], [passage]) for name in "AB"],
        }
        last = "Two, more" if order[-1] == "updates" else "B, all"
        return half({name: changes[name] for name in order}, last)

    answer = ask(QUESTION, playing(instead), DeepSettings(quick=True, steps=1, merge=False))
    said = {point.description for point in answer.trace.memory.points}
    assert said == {
        "One, more fully.",
        "A, all that is new.",
        "B, all that is new." if order[-1] == "updates" else "Two, more fully.",
        *({"Point 1.2."} if order[-1] == "updates" else ()),
    }
    assert "cut off" in refused(answer)
    assert replayed(answer)


def test_truncated_subquery_is_not_searched(ask) -> None:
    first = {"concern": "a", "point": 0, "subquery": "Who keeps the flame?"}
    second = {"concern": "b", "point": 0, "subquery": "Who inherited the workshop?"}
    judged = half({"enough": False, "concerns": [first, second]}, "Who inh")
    answer = ask(QUESTION, at("judge", lambda _call: judged), DeepSettings(quick=True, steps=1))
    assert [concern.subquery for concern in answer.trace.steps[1].concerns] == ["Who keeps the flame?"]
    assert replayed(answer)
    answer = ask(QUESTION, at("judge", lambda _call: half({"enough": False, "concerns": [second]}, "Who inh")))
    assert (answer.stopped, len(answer.trace.steps)) == ("model", 2)
    assert "cut off before it had named" in (answer.note or "")
    assert replayed(answer)


@pytest.mark.parametrize("streamed", [True, False])
def test_truncated_answer_keeps_its_complete_sentences(ask, streamed: bool) -> None:
    sentences = [{"text": "It is so.", "sources": [1]}, {"text": "It is so because of the flame.", "sources": [2]}]
    said: list[Text | Status] = [half({"found": True, "sentences": sentences, "short": "so"}, "because of")]
    if not streamed:
        said.insert(0, Status(500))
    answer = ask(QUESTION, at("answer", lambda _call: said.pop(0)), ONE_STEP)
    assert answer.text == "It is so. [1]"
    assert answer.trace.answered[-1].cut


def test_repeated_answer_call_has_the_same_token_limit(ask, model: ModelServer) -> None:
    form = AnswerForm(length=3_000)
    first = [Status(500)]
    ask(QUESTION, at("answer", lambda _call: first.pop() if first else None), ONE_STEP, form=form)
    allowed = [call.body["max_tokens"] for call in model.calls if call.purpose == "answer"]
    assert allowed == [form.max_tokens] * 2
    assert form.max_tokens > DEFAULT_MAX_TOKENS


def judged(answer: DeepAnswer) -> ModelCall:
    call = answer.trace.steps[-1].judged
    assert call is not None
    return call


def counted(model: ModelServer, purpose: str) -> tuple[int, int]:
    """Prompt and completion tokens as the model's server counts them."""
    asked = [
        sum(len(m["content"]) for m in call.body["messages"]) // 4 for call in model.calls if call.purpose == purpose
    ]
    return sum(asked), 5 * len(asked)


def test_tokens_of_an_unreadable_truncated_answer_are_counted(ask, model: ModelServer) -> None:
    answer = ask(QUESTION, at("judge", lambda _call: Text('{"enough": fal', finish="length")))
    call = judged(answer)
    assert call.requests == model.count("judge") == 1
    assert (call.prompt_tokens, call.completion_tokens) == counted(model, "judge")
    spent = sum(each.prompt_tokens + each.completion_tokens for each in every_call(answer.trace))
    assert answer.tokens.prompt + answer.tokens.completion == spent
    too_long = Status(400, json.dumps({"error": {"message": "maximum context length is 4096 tokens"}}))
    refused = judged(ask(QUESTION, at("judge", lambda _call: too_long)))
    assert (refused.prompt_tokens, refused.completion_tokens) == (0, 0), "nothing was answered"


def test_tokens_of_a_failed_try_are_counted_if_the_budget_forbids_a_retry(ask, model: ModelServer) -> None:
    settings = DeepSettings(quick=True, steps=2, budget=Budget(calls=4))
    answer = ask(QUESTION, at("judge", lambda _call: Text("Hm.")), settings)
    call = judged(answer)
    assert (answer.stopped, call.requests, model.count("judge")) == ("calls", 1, 1)
    assert call.prompt_tokens == prompt_tokens(call.messages)
