"""`show FILE --html OUT`: a trace as one page that needs nothing but a browser, whatever the documents and the model wrote."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from cli.errors import CommandError
from cli.graph.trace import common_layout, read_trace, retrieval_graphs, trace_page, working_memory_graphs
from daemon.contract.answering.steps import DeepStep, IterativeStep, PointMemory
from tests.cli.scripted_daemon import Here
from tests.daemon.page.browsing import browsing
from tests.daemon.services.answering.conftest import Asking
from tests.memory.answering.working_memory.scripted_model import playing

pytestmark = pytest.mark.browser

HOSTILE = (
    "</script><script>document.title='taken'</script><img src=http://127.0.0.1:9/x onerror=\"document.title='taken'\">"
)


@pytest.fixture(scope="module")
def answers(running: Asking) -> dict[str, Any]:
    """A deep answer and an iterative one, whose texts try to take over the page."""

    def instead(call: Any, turn: int) -> Any:
        if call.purpose == "thought":
            return {"thought": f"{HOSTILE} {turn}", "sources": [1], "answers": turn == 2}
        if call.purpose == "answer":
            return {"found": True, "sentences": [{"text": HOSTILE, "sources": [1]}], "short": HOSTILE}
        if call.purpose == "merge" and turn == 1:
            return {"merges": [{"points": [1, 2], "description": HOSTILE}]}
        return None

    question = f"Why? {HOSTILE}"
    try:
        return {
            "deep": running.ask(playing(instead), question=question, deep=True, session="page"),
            "iterative": running.ask(playing(instead), question=question, steps=4, k=3),
        }
    finally:
        running.daemon.ask("DELETE", "/v1/sessions", json={"names": ["page"]})


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """hippoctl in this process: no daemon is needed to draw a trace."""
    return Here(tmp_path, {})


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


@pytest.mark.daemon
@pytest.mark.parametrize("kind", ["deep", "iterative"])
def test_trace_page_works_offline_and_runs_no_script_from_texts(
    answers: dict[str, Any], here: Here, browser: Browser, tmp_path: Path, kind: str
) -> None:
    trace = tmp_path / "t.json"
    trace.write_text(json.dumps(answers[kind]))
    ran = here("show", str(trace), "--html", str(tmp_path / "t.html"), "--json")
    assert ran.code == 0, ran.err
    assert ran.json["steps"] == len(answers[kind]["steps"])
    with closing(browser.new_context(offline=True)) as context:
        shown = context.new_page()
        asked, wrong = [], []
        shown.on("request", lambda request: asked.append(request.url))
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.goto((tmp_path / "t.html").as_uri())
        shown.locator("canvas:visible").first.wait_for(timeout=60_000)
        tabs = shown.locator(".bk-tab")
        assert [tabs.nth(at).inner_text() for at in range(tabs.count())] == [
            f"Step {step['number']}" for step in answers[kind]["steps"]
        ]
        assert HOSTILE in shown.locator("h1").inner_text()
        assert HOSTILE in shown.locator(".answer").inner_text()
        assert shown.title() == f"Why? {HOSTILE}"
        assert shown.locator("img").count() == 0
    assert [url for url in asked if not url.startswith("data:")] == [(tmp_path / "t.html").as_uri()]
    assert wrong == []


def test_working_memory_graphs_show_each_step_in_a_common_layout(answers: dict[str, Any]) -> None:
    deep = answers["deep"]
    steps = [DeepStep.model_validate(step) for step in deep["steps"]]
    pictures = working_memory_graphs(PointMemory(), steps)
    for step, picture in zip(deep["steps"], pictures, strict=True):
        points = {point["id"]: set(point["entities"]) for point in step["after"]["points"]}
        drawn: dict[str, set[str]] = {node.name: set() for node in picture.nodes if node.kind == "point"}
        for start, end in picture.edges:
            drawn[picture.nodes[start].name].add(picture.nodes[end].name)
        assert drawn == points
        fresh = {change["point"]["id"] for change in step["changes"]} & set(points)
        assert {node.name for node in picture.nodes if node.fresh} == fresh
    where = common_layout(pictures)
    assert where == common_layout(pictures)
    assert set(where) == {node.key for picture in pictures for node in picture.nodes}
    later = working_memory_graphs(steps[0].after, steps[1:])
    assert [picture.title for picture in later] == ["Before", "Step 1", "Step 2", "Step 3"]


def test_retrieval_graph_contains_the_passages_found_by_each_query(answers: dict[str, Any]) -> None:
    steps = [IterativeStep.model_validate(step) for step in answers["iterative"]["steps"]]
    pictures = retrieval_graphs(steps)
    assert len(pictures[-1].edges) == sum(len(step.found) for step in steps)
    passages = [node.name for node in pictures[-1].nodes if node.kind == "passage"]
    assert sorted(passages) == sorted({each.id for step in steps for each in step.found})


def test_trace_page_contains_every_subquery_and_change(answers: dict[str, Any], tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    trace.write_text(json.dumps(answers["deep"]))
    text = trace_page(read_trace(trace))
    for step in answers["deep"]["steps"]:
        for concern in step["concerns"]:
            assert concern["subquery"].replace("<", "&lt;").split("&")[0] in text
        for change in step["changes"]:
            assert f"<b>{change['point']['id']}</b>" in text
    assert "entities a point" in text


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a trace"),
        ('{"answer": "x"}', "is not a trace"),
        ('{"question": "q", "steps": []}', "not understood"),
        (None, "cannot be read"),
    ],
)
def test_file_that_is_not_a_trace_is_refused(tmp_path: Path, written: str | None, said: str) -> None:
    if written is not None:
        (tmp_path / "t.json").write_text(written)
    with pytest.raises(CommandError, match=said):
        read_trace(tmp_path / "t.json")


def test_trace_without_steps_is_refused(asking: Asking, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(asking.ask()))
    with pytest.raises(CommandError, match="no steps to draw"):
        read_trace(tmp_path / "t.json")
