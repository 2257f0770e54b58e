"""The tools' requests to the daemon, and their messages if it is slow, busy, or answers unexpectedly."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from daemon.mcp import tool_types, tools
from daemon.mcp.daemon_client import CallError, DaemonClient
from tests.cli.sample_answers import STATUS
from tests.cli.scripted_daemon import ReceivedRequest, Reply, Scripted, problem, serving


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with serving() as daemon:
        yield daemon


def do(scripted: Scripted, act: Any, arguments: Any) -> tuple[Any, list[tuple[float, str]]]:
    """Returns the result and the progress."""
    heard: list[tuple[float, str]] = []

    async def progress(at: float, said: str) -> None:
        heard.append((at, said))

    async def run() -> Any:
        client = DaemonClient(str(scripted.socket))
        try:
            return await act(client, arguments, progress)
        finally:
            await client.close()

    return asyncio.run(run()), heard


def events(*pairs: tuple[str, str]) -> Reply:
    return Reply(pieces=[f"event: {name}\ndata: {data}\n\n".encode() for name, data in pairs])


ANSWER = (
    '{"question": "q", "answer": "a", "citations": [], "steps": [{"big": "record"}, {}], '
    '"tokens": {"prompt": 1, "completion": 2}, "took_ms": 3.0, "found": true, "short": "a"}'
)


def test_deep_question_is_forwarded_and_its_steps_reported_as_progress(scripted: Scripted) -> None:
    scripted.answers["POST /v1/ask"] = events(
        ("step", '{"kind": "began", "step": 1, "points": 0}'),
        ("text", '{"text": "so far"}'),
        ("strange", '["of", "a", "newer", "daemon"]'),
        ("answer", ANSWER),
    )
    answer, heard = do(scripted, tools.ask, tool_types.Ask(question="q", deep=True, steps=2))
    assert scripted.asked[0].body == {"question": "q", "k": 5, "deep": True, "steps": 2}
    assert (answer.answer, answer.steps) == ("a", 2)
    assert heard == [(1, "step began 1"), (2, "so far"), (3, "strange")]


def test_failure_during_a_streamed_answer_is_reported(scripted: Scripted) -> None:
    scripted.answers["POST /v1/ask"] = events(
        ("text", '{"text": "so"}'), ("problem", '{"title": "t", "status": 502, "detail": "The model is away."}')
    )
    with pytest.raises(CallError, match="The model is away"):
        do(scripted, tools.ask, tool_types.Ask(question="q"))
    scripted.answers["POST /v1/ask"] = events(("text", '{"text": "so"}'))
    with pytest.raises(CallError, match="ended early"):
        do(scripted, tools.ask, tool_types.Ask(question="q"))
    scripted.answers["POST /v1/ask"] = events(("answer", '{"question": "q"}'))
    with pytest.raises(CallError, match=r"expected form .answer: "):
        do(scripted, tools.ask, tool_types.Ask(question="q"))


def test_add_waits_for_its_own_document_only(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "REPORT_INTERVAL_S", 0.0)
    states = ["pending", "pending", "indexed"]

    def listed(_asked: ReceivedRequest) -> Any:
        entry = {"uri": "added:x", "title": "", "state": states.pop(0), "passages": 1, "attempts": 0}
        return {"documents": [entry]}

    scripted.answers |= {
        "POST /v1/documents": {"accepted": 1, "documents": ["added:x"]},
        "GET /v1/documents": listed,
    }
    added, heard = do(scripted, tools.add, tool_types.Add(text="t", metadata={"by": "me"}, wait_s=600))
    assert scripted.asked[0].body == {"documents": [{"text": "t", "by": "me"}]}
    assert (added.uri, added.searchable, states) == ("added:x", True, [])
    assert [at for at, _ in heard] == [1, 2] and "waiting to be indexed" in heard[0][1]
    states = ["pending"]
    added, _ = do(scripted, tools.add, tool_types.Add(text="t", wait_s=0))
    assert not added.searchable and added.document.state == "pending"
    scripted.answers["GET /v1/documents"] = {"documents": []}
    added, _ = do(scripted, tools.add, tool_types.Add(text="t", wait_s=0))
    assert (added.searchable, added.document) == (False, None)


def test_request_is_retried_while_the_daemon_starts_or_is_busy(scripted: Scripted) -> None:
    turns = [problem("not-ready", 503, "hippod is starting."), STATUS]

    def answer(_asked: ReceivedRequest) -> Any:
        return turns.pop(0)

    scripted.answers["GET /v1/status"] = answer
    found, _ = do(scripted, tools.status, tool_types.Status())
    assert found.state == "ready" and not turns
    turns = [problem("busy", 503, "8 questions are under way."), events(("answer", ANSWER))]
    scripted.answers["POST /v1/ask"] = answer
    assert do(scripted, tools.ask, tool_types.Ask(question="q"))[0].answer == "a"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply({"state": "ready"}), "expected form .commit: "),
        (Reply(b"<html>", 500), "is not hippod .HTTP 500."),
        (Reply(pieces=[b"{", ConnectionError()]), "closed the connection"),
        (problem("internal", 500, "An internal error."), "An internal error"),
    ],
)
def test_unexpected_answer_is_reported_as_such(scripted: Scripted, reply: Reply, said: str) -> None:
    scripted.answers["GET /v1/status"] = reply
    with pytest.raises(CallError, match=said):
        do(scripted, tools.status, tool_types.Status())
