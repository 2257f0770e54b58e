"""`bench fewer_calls`: every way of asking gets the entities and triples that the model says, in its own number of calls."""

from typing import Any

import pytest

from bench.sections.quality.fewer_calls import Spent, _next, _on_recorded
from bench.support.extraction_ways import NAMES, TRIPLES, WAYS
from store.types import PassageText

PASSAGES = [PassageText(str(at), f"Light {at}", f"Ada Kerr built light {at} in 18{at:02}.") for at in range(6)]
RECORDED: dict[str, dict[str, Any]] = {
    each.id: {"passage": each, NAMES: ["Ada Kerr", each.title], TRIPLES: [["Ada Kerr", "built", each.title]]}
    for each in PASSAGES
}
CALLS = [12, 12, 12, 6, 4]
"""Calls for six passages, of which at most four are read in one call."""


@pytest.mark.parametrize(("name", "calls"), list(zip(WAYS, CALLS, strict=True)))
def test_each_way_of_calling_extracts_the_recorded_answers(name: str, calls: int) -> None:
    spent = _on_recorded(WAYS[name], RECORDED)
    assert spent.calls == calls
    assert [(each.passage.id, each.names, each.triples) for each in spent.extracted] == [
        (id, recorded[NAMES], recorded[TRIPLES]) for id, recorded in RECORDED.items()
    ]
    assert 0 < spent.computed < spent.prompt, "a part of the prompts is equal for all passages"


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("said", [{}, [], "no", {NAMES: 7, TRIPLES: "x", "passages": 3}, {"passages": [{}]}], ids=str)
def test_an_unusable_answer_gives_nothing(name: str, said: object) -> None:
    spent = Spent()
    reading, sent = WAYS[name](PASSAGES[:2]), None
    while _next(reading, sent, spent) is not None:
        sent = said
    assert [(each.names, each.triples) for each in spent.extracted] == [([], []), ([], [])]


def test_the_passage_before_the_task_is_computed_once() -> None:
    computed = {name: _on_recorded(way, RECORDED).computed for name, way in WAYS.items()}
    assert computed["two calls, passage before task"] < computed["two calls (hippod)"]
