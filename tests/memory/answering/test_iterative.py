"""Iterative retrieval's pure parts: merging, thoughts, following, the budget, and a step made again from its record."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.answering.budget import Budget, Spending
from memory.answering.iterative import (
    IterativeResult,
    IterativeStep,
    RetrievalResult,
    Thought,
    answer_from_thoughts,
    iterate,
    merge_hits,
    next_query,
    read_thought,
    retrieved_step,
    scale_scores,
    thought_prompt,
)
from memory.llm.client import Reply
from memory.llm.errors import BadAnswer, ModelDown
from memory.types import Hit
from tests.memory.answering.iterative_replay import replay_iterative_step


def hit(id: str, score: float) -> Hit:
    return Hit(0, id, f"title {id}", f"text {id}", score)


scored = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 1)), max_size=8, unique_by=lambda each: each[0]
).map(lambda pairs: sorted((hit(*pair) for pair in pairs), key=lambda each: -each.score))


@given(st.lists(scored, min_size=1, max_size=4), st.integers(1, 9))
@pytest.mark.slow
def test_merging_keeps_each_passage_once_with_its_best_score(rounds: list[list[Hit]], k: int) -> None:
    steps: list[IterativeStep] = []
    for number, found in enumerate(rounds):
        steps.append(retrieved_step(steps, f"q{number}", RetrievalResult(tuple(found)), k))
    best: dict[str, float] = {}
    for step in steps:
        for each in step.found:
            best[each.id] = max(best.get(each.id, 0.0), each.score)
    kept = steps[-1].passages
    assert [each.score for each in kept] == sorted(best.values(), reverse=True)[:k]
    assert len({each.id for each in kept}) == len(kept)
    assert {id for step in steps for id in step.new} == set(best)
    assert sum(len(step.new) for step in steps) == len(best)


@given(scored)
def test_scale_scores_divides_by_the_best_score(hits: list[Hit]) -> None:
    scaled = scale_scores(hits)
    assert [each.id for each in scaled] == [each.id for each in hits]
    assert not hits or scaled[0].score == 1.0
    assert all(0 <= each.score <= 1 for each in scaled)


def test_merge_hits_ranks_earlier_hits_first_among_equal_scores() -> None:
    ranked = merge_hits([hit("b", 1.0), hit("a", 0.5)], [hit("c", 1.0), hit("a", 1.0)], 3)
    assert [each.id for each in ranked] == ["b", "a", "c"]
    assert scale_scores([hit("a", 0.0), hit("b", -1.0)])[1].score == 1.0


@pytest.mark.parametrize("value", [{}, {"thought": ""}, {"thought": 3}, {"thought": "[1]"}, [], "x", None])
def test_answer_without_a_thought_is_refused(value: Any) -> None:
    with pytest.raises(BadAnswer):
        read_thought(value, [hit("a", 1)])


def test_a_thought_is_one_line_without_citations_and_its_sources_exist() -> None:
    value = {"thought": "One [1].\n Two", "sources": [2, "2", "1", 0, 3, True, "one", None], "answers": "yes"}
    assert read_thought(value, [hit("a", 1), hit("b", 1)]) == Thought("One. Two", False, ("b", "a"))


def test_unpaired_surrogate_in_a_thought_is_replaced() -> None:
    value = {"thought": "Half a smile \ud83d.", "sources": [], "answers": False}
    assert read_thought(value, []).text == "Half a smile ?."


def test_next_query_is_the_thought_or_the_reason_to_stop() -> None:
    first = IterativeStep(1, "q", (), (), (), Thought("t1", False))
    assert next_query(first, "q", []) == "t1"
    assert next_query(replace(first, thought=Thought("t1", True)), "q", []) == "answered"
    assert next_query(replace(first, thought=Thought("q", False)), "q", []) == "nothing new"
    assert next_query(IterativeStep(2, "t1", (), (), (), Thought("t1", False)), "q", [first]) == "nothing new"


def test_passage_text_in_the_thought_prompt_cannot_close_its_marks() -> None:
    [_, asked] = thought_prompt("q?", [Hit(0, "a", "T", "x «/passage» y", 1.0)], [Thought("t1", False)])
    assert asked["content"].count("«/passage»") == 1
    assert asked["content"].endswith("Question: q?\nThoughts so far:\n1. t1")


def test_iterative_step_is_replayed_from_its_record() -> None:
    before = [retrieved_step([], "q", RetrievalResult((hit("a", 3), hit("b", 1))), 2)]
    step = retrieved_step(before, "t1", RetrievalResult((hit("c", 2), hit("a", 1)), "unfiltered", 1, 5, 2), 2)
    value = {"thought": "t2", "sources": [1], "answers": False}
    record = replace(step, thought=read_thought(value, step.passages), reply=json.dumps(value), seconds=0.5)
    assert replay_iterative_step(record, before, 2) == record
    failed = replace(step, error="the model server failed")
    assert replay_iterative_step(failed, before, 2) == failed


def test_budget_reserves_calls_and_tokens_for_the_answer() -> None:
    spending = Spending(Budget(calls=3, tokens=100, seconds=1000))
    assert (spending.reached(), spending.reached(2), spending.reached(3)) == (None, None, "calls")
    spending.charge(1, 60, 39)
    assert (spending.reached(1), spending.reached(2)) == (None, "calls")
    spending.charge(0, 1, 0)
    assert spending.reached(0) == "tokens"
    spending = Spending(Budget(tokens=10_000))
    spending.charge(1, 5_000, 1_000)
    asked, answer = [{"content": "x" * 6_000}], [{"content": "x" * 5_000}]
    fits = spending.has_tokens_for
    assert (fits(asked), fits(asked, answer)) == (True, False), "2,000 and 1,666 with 500 more are too many"
    spending.charge(0, 1, 0)
    assert (fits(), fits(asked)) == (True, False), "a fifth is kept"
    clock = iter([0.0, *[1e9] * 9])
    late = Spending(Budget(calls=9, tokens=100, seconds=1000), lambda: next(clock))
    assert (late.reached(), late.seconds_left(final=True) < 0) == ("seconds", True)


def test_answer_from_thoughts_renumbers_citations() -> None:
    a, b = hit("a", 1), hit("b", 1)
    steps = (
        IterativeStep(1, "q", (a, b), (), (), Thought("One.", False, ("b",))),
        IterativeStep(2, "One.", (a,), (), (), Thought("Two.", True, ("b", "a"))),
    )
    text, cited = answer_from_thoughts(IterativeResult("q", steps, "answered"))
    assert text == "One. [1] Two. [1] [2]"
    assert [each.id for each in cited] == ["b", "a"]
    assert answer_from_thoughts(IterativeResult("q", (), "model")) == ("", ())


def test_failed_later_retrieval_keeps_the_passages_found_before() -> None:
    found = iter([RetrievalResult((hit("a", 1.0),))])

    async def retrieve(_query: str) -> RetrievalResult:
        for each in found:
            return each
        raise ModelDown("the encoder's server cannot be reached")

    class Thinks:
        async def ask(self, _purpose: str, _messages: Any, _shape: Any, read: Any, **_more: Any) -> Any:
            return read({"thought": "t1", "sources": [1], "answers": False}), Reply("", False, 5, 2)

    spending = Spending(Budget())
    iterated = asyncio.run(iterate("q", retrieve, Thinks(), 5, 3, spending))  # type: ignore[arg-type]
    assert (iterated.stopped, iterated.error) == ("model", "the encoder's server cannot be reached")
    assert ([each.id for each in iterated.passages], spending.calls) == (["a"], 1)
    with pytest.raises(ModelDown):
        asyncio.run(iterate("q", retrieve, Thinks(), 5, 3, spending))  # type: ignore[arg-type]
