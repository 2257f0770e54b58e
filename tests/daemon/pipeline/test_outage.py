"""An outage: tries with growing pauses, one line in the log, and a reason that `status` can report until a try succeeds."""

import asyncio
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from daemon.pipeline import outage
from daemon.pipeline.outage import Dependency

DOWN = ConnectionError("refused")


def pauses(server: Dependency, count: int) -> list[float]:
    return [server.failed("server_away", DOWN) for _ in range(count)]


def test_pauses_double_up_to_the_maximum_with_jitter() -> None:
    for pause, usual in zip(pauses(Dependency(5), 6), [1, 2, 4, 5, 5, 5], strict=True):
        assert usual * 0.8 <= pause <= usual * 1.2
    assert len(set(pauses(Dependency(5), 6)[3:])) > 1


def test_success_ends_the_outage_and_resets_the_pause() -> None:
    server = Dependency(30)
    pauses(server, 4)
    problem = server.problem
    server.restored()
    assert (problem, server.problem) == ("ConnectionError: refused", None)
    assert server.failed("server_away", DOWN) <= 1.2


def test_the_start_of_an_outage_is_kept_while_its_reason_changes() -> None:
    server = Dependency(30)
    server.failed("server_away", DOWN, since=1000.0)
    server.failed("server_away", TimeoutError("no answer"), "POST /v1/embeddings")
    assert server.outage is not None
    assert server.outage.since == 1000.0
    assert server.problem == "POST /v1/embeddings: TimeoutError: no answer"


def test_an_outage_is_logged_once_until_its_error_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Dependency(30)
    with capture_logs() as lines:
        pauses(server, 3)
        server.failed("server_away", OSError(28, "No space left on device"))
    assert [(each["event"], each["log_level"]) for each in lines] == [("server_away", "warning")] * 2
    monkeypatch.setattr(outage, "LOG_INTERVAL_S", 0)
    with capture_logs() as lines:
        pauses(server, 3)
    assert len(lines) == 3


def test_until_done_retries_outages_and_raises_other_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "MIN_PAUSE_S", 0.001)
    server = Dependency(0.002)
    answers: Iterator[Exception | str] = iter([DOWN, DOWN, "done"])
    reported: list[str | None] = []

    async def attempt() -> str:
        reported.append(server.problem)
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def refuse() -> str:
        raise ValueError("not an outage")

    def is_away(error: Exception) -> bool:
        return isinstance(error, OSError)

    assert asyncio.run(server.until_done("server_away", attempt, is_away)) == "done"
    assert reported == [None, "ConnectionError: refused", "ConnectionError: refused"]
    assert server.problem is None
    with pytest.raises(ValueError, match="not an outage"):
        asyncio.run(server.until_done("server_away", refuse, is_away))
