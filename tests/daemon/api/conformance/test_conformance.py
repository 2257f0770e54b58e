"""Every answer of a real daemon conforms to `/openapi.json`, for requests generated and checked by schemathesis."""

from collections.abc import Iterator

import pytest

from tests.daemon.api.conformance.schemathesis_run import Report, check, served
from tests.e2e.real_hippod import Daemon

pytestmark = pytest.mark.daemon

Running = tuple[Daemon, str, list[str]]
LONG = "/v1/graph"
"""Takes a third of all requests, with a body much like a query's: left to `python -m bench api`."""
NOT_THERE = {
    f"POST {LONG}",
    "POST /v1/backfill",
    "POST /v1/backup",
    "POST /v1/confirm",
    "POST /v1/remove-source",
    "GET /openapi.json",
}
"""Operations that cannot succeed here, in this order: excluded below, useless in this configuration, not allowed over TCP,
allowed only after a loss, in need of a source's name, and the document itself, which is requested first."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with served(tmp_path_factory.mktemp("api")) as made:
        yield made
        print(f"--- {made[0].home} logged:\n{made[0].log_text()[-6000:]}")


@pytest.fixture(scope="module")
def report(running: Running) -> Report:
    options = ("--phases", "coverage", "--generation-deterministic", "--exclude-path", LONG)
    return check(*running, *options, timeout_s=220)


@pytest.mark.timeout(300)
def test_every_answer_is_as_documented(report: Report) -> None:
    assert not report.failures, "\n\n".join(report.failures[:10]) + report.output[-2000:]


def test_at_least_400_requests_were_sent_and_most_operations_succeeded(report: Report, running: Running) -> None:
    """Detects a run whose requests are all refused or invalid."""
    assert report.requests >= 400
    paths = running[0].ask("GET", "/openapi.json")["paths"]
    operations = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    succeeded = {operation for operation, counts in report.answers.items() if counts[200]}
    assert operations - succeeded <= NOT_THERE
    assert report.statuses()[422] > 100


def test_no_request_causes_an_internal_error(report: Report, running: Running) -> None:
    assert {status for status in report.statuses() if status >= 500} <= {503}
    assert running[0].events("request_failed") == []
    assert "Traceback" not in running[0].log_text()
