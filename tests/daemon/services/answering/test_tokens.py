"""What `ask --steps N` may cost in tokens: every call is counted and fits, and so does the answer's."""

import json
from typing import Any

import pytest

from memory.llm.chat_completion import CHARS_PER_TOKEN
from tests.daemon.services.answering.conftest import Asking, Thoughts
from tests.memory.answering.working_memory.toy import QUESTION
from tests.memory.llm.model_server import Raw, Status, Text, obedient

pytestmark = pytest.mark.daemon

ENOUGH = "Ottilie pays for the flame!"


def prompts(asking: Asking) -> int:
    """Tokens of all that the model was asked, about."""
    return sum(
        sum(len(message["content"]) for message in call.body["messages"]) // CHARS_PER_TOKEN
        for call in asking.model.calls
    )


def uncounted(content: str) -> Raw:
    """An answer by a server that does not count tokens."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return Raw(json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}))


@pytest.mark.parametrize("counts", [True, False], ids=["counting", "not counting"])
def test_calls_never_exceed_max_tokens(asking: Asking, thinking: Thoughts, counts: bool) -> None:
    thoughts = [f"Thought {at}." for at in range(9)]

    def ask(**more: Any) -> dict[str, Any]:
        play = thinking(*thoughts)

        def script(call: Any) -> Any:
            said = play(call)
            return said if counts or call.purpose != "thought" else uncounted(json.dumps(said))

        asking.model.calls.clear()
        return asking.ask(script, steps=6, **more)

    whole = ask()
    assert (whole["stopped"], whole["calls"]) == ("steps", 6)
    assert counts or whole["tokens"]["prompt"] > prompts(asking) * 0.8
    needed, seen, shown = prompts(asking), set(), set()
    for allowed in range(100, needed + 1200, 400):
        answer = ask(max_tokens=allowed)
        assert answer["answer"]
        assert answer["tokens"]["prompt"] <= allowed
        if not counts:
            assert prompts(asking) <= allowed
        seen.add((answer["stopped"], answer["written"]))
        if answer["written"]:
            shown.add(asking.model.calls[-1].passage.count("«/passage»"))
        if answer["stopped"] == "tokens":
            assert f"no more than {allowed:,} tokens were allowed" in answer["note"]
    assert seen == {("tokens", False), ("tokens", True), ("steps", True)}
    assert min(shown) < max(shown) == 5, "the answer's passages are cut to fit"


def test_tokens_of_unusable_thoughts_are_counted(asking: Asking) -> None:
    def ask(said: Any) -> dict[str, Any]:
        asking.model.calls.clear()
        answer = asking.ask(lambda call: said if call.purpose == "thought" else obedient(call), steps=3)
        [step] = answer["steps"]
        assert step["error"]
        return dict(step)

    for said in (Text("Hm."), Text('{"thought": ', "length")):
        step = ask(said)
        # As the model's server counts them, try by try.
        tries = [
            sum(len(m["content"]) for m in call.body["messages"]) // 4
            for call in asking.model.calls
            if call.purpose == "thought"
        ]
        assert (step["prompt_tokens"], step["completion_tokens"]) == (sum(tries), 5 * len(tries))
    step = ask(Status(500))
    assert (step["prompt_tokens"], step["completion_tokens"]) == (0, 0)


def test_lone_surrogate_in_a_thought_is_replaced(asking: Asking, thinking: Thoughts) -> None:
    answer = asking.ask(thinking("Half a smile \ud83d", ENOUGH), steps=5)
    assert [step["query"] for step in answer["steps"]] == [QUESTION, "Half a smile ?"]
    assert (answer["stopped"], answer["written"]) == ("answered", True)
