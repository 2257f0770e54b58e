"""Every error is a problem+json that says what was wrong, where, and what is allowed."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from daemon.contract.base import Problem
from daemon.contract.http.routes import PROBLEM_JSON, ProblemType, Route
from tests.daemon.api.harness import SECRET, Served, read_all, served


@pytest.fixture(scope="module")
def api() -> Iterator[Served]:
    with served() as running:
        yield running


def problem_of(answer: httpx2.Response) -> Problem:
    assert answer.headers["content-type"] == PROBLEM_JSON
    problem = Problem.model_validate_json(answer.content)
    assert problem.status == answer.status_code
    assert problem.detail.endswith(".")
    return problem


@pytest.mark.parametrize(
    ("path", "body", "field", "allowed"),
    [
        (Route.QUERY, {"query": "x", "mode": "sparse"}, "mode", "hipporag2"),
        (Route.QUERY, {"query": "x", "filter": "no"}, "filter", "auto"),
        (Route.QUERY, {"query": "x", "topk": 3}, "topk", "k"),
        (Route.QUERY, {"query": "x", "k": 0}, "k", None),
        (Route.QUERY, {"query": "x", "k": "many"}, "k", None),
        (Route.QUERY, {"query": "  "}, "query", None),
        (Route.QUERY, {"query": "x", "as_of": "2026-01-02T03:04:05"}, "as_of", None),
        (Route.QUERY, {}, "query", None),
        (Route.QUERY, {"query": "x", "k": True}, "k", None),
        (Route.QUERY, {"query": "x", "k": "5"}, "k", None),
        (Route.QUERY, {"query": "x", "as_of": "5"}, "as_of", None),
        (Route.QUERY, {"query": "x", "as_of": 1.5}, "as_of", None),
        (Route.QUERY, {"query": "x", "explain": 1}, "explain", None),
        (Route.QUERY, {"query": "x", "settings": {"damping": 0.9999999999999999}}, "settings.damping", None),
        (Route.QUERY, {"query": "x", "settings": {"name_share": True}}, "settings.name_share", None),
        (Route.BACKUP, {"directory": "backup"}, "directory", None),
        (Route.BACKUP, {"directory": "/tmp/\0"}, "directory", None),
        (Route.ASK, {"question": "x", "steps": 0}, "steps", None),
        (Route.WAIT, {"timeout_s": False}, "timeout_s", None),
        (Route.DOCUMENTS, {"documents": []}, "documents", None),
        (Route.DOCUMENTS, {"documents": [{"text": "x"}, "y"]}, "documents[1]", None),
        (Route.RETRY, {"uris": ["a", ""]}, "uris[1]", None),
        (Route.WAIT, {"timeout_s": -1}, "timeout_s", None),
    ],
)
def test_a_wrong_field_is_named_with_what_is_allowed(
    api: Served, path: str, body: dict[str, Any], field: str, allowed: str | None
) -> None:
    answer = api.client.post(path, json=body)
    assert answer.status_code == 422
    problem = problem_of(answer)
    assert problem.type == ProblemType.INVALID
    assert problem.errors is not None
    assert problem.errors[0].field == field
    assert field in problem.detail
    if allowed is not None:
        assert allowed in (problem.errors[0].allowed or [])


def test_several_wrong_fields_are_all_named(api: Served) -> None:
    errors = problem_of(api.client.post(Route.QUERY, json={"k": 0, "mode": "x"})).errors
    assert {error.field for error in errors or []} == {"query", "k", "mode"}


@pytest.mark.parametrize("query", [{"state": "lost"}, {"limit": "0"}, {"prefx": "a"}, {"limit": ["1", "2"]}])
def test_a_wrong_parameter_is_named(api: Served, query: dict[str, Any]) -> None:
    answer = api.client.get(Route.DOCUMENTS, params=query)
    assert answer.status_code == 422
    errors = problem_of(answer).errors
    assert [error.field for error in errors or []] == list(query)


@pytest.mark.parametrize("query", [{"uris": "a"}, {"uri": ""}])
def test_removal_with_an_invalid_parameter_is_refused(api: Served, query: dict[str, str]) -> None:
    assert problem_of(api.client.delete(Route.DOCUMENTS, params=query)).status == 422


def test_a_removal_of_nothing_is_refused(api: Served) -> None:
    errors = problem_of(api.client.delete(Route.DOCUMENTS)).errors
    assert [error.field for error in errors or []] == ["uris"]


@pytest.mark.parametrize("body", [b"{", b"{'query': 1}", b"\xff\xfe", b'{"query": "\\ud800"}', b"[" * 100_000])
def test_a_body_that_is_not_json_is_refused(api: Served, body: bytes) -> None:
    answer = api.client.post(Route.QUERY, content=body, headers={"Content-Type": "application/json"})
    assert problem_of(answer).status == 400


@pytest.mark.parametrize(
    ("body", "status"),
    [(b'{"text": "a"}\n{"text": \n', 400), (b'{"text": "a"}\n[1]\n', 422), (b"\n \n", 422), (b'{"a": NaN}', 400)],
)
def test_invalid_line_of_json_lines_is_named_and_no_document_is_added(api: Served, body: bytes, status: int) -> None:
    before = dict(api.memory.documents_by_uri)
    answer = api.client.post(Route.DOCUMENTS, content=body, headers={"Content-Type": "application/x-ndjson"})
    problem = problem_of(answer)
    assert problem.status == status
    assert "Line 2" in problem.detail or body in (b"\n \n", b'{"a": NaN}')
    assert api.memory.documents_by_uri == before


@pytest.mark.parametrize("path", [Route.QUERY, Route.DOCUMENTS, Route.IMPORT])
def test_unsupported_media_type_is_refused_and_the_supported_one_named(api: Served, path: str) -> None:
    answer = api.client.post(path, content=b"a=b", headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert answer.status_code == 415
    assert "application/json" in problem_of(answer).detail


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/page",
        "/page/",
        "/page/nothing.js",
        "/page/..%2fdoor.py",
        "/page/lib/bokeh.js",
        "/v1/nothing",
        "/v1/status/",
        "/docs",
        "/v1/documents/",
    ],
)
def test_an_unknown_path_is_not_found(api: Served, path: str) -> None:
    assert problem_of(api.client.get(path)).status == 404


def test_an_unknown_document_is_not_found(api: Served) -> None:
    problem = problem_of(api.client.get("/v1/documents/file%3A%2F%2F%2Fnone"))
    assert (problem.status, problem.type) == (404, ProblemType.NOT_FOUND)
    assert "file:///none" in problem.detail


def test_a_path_that_is_not_utf8_is_refused(api: Served) -> None:
    assert problem_of(api.client.get("/v1/documents/%FF")).status == 400


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("GET", Route.QUERY, "POST"), ("PUT", Route.DOCUMENTS, "DELETE, GET, POST"), ("OPTIONS", Route.STATUS, "GET")],
)
def test_unsupported_method_is_refused_and_allowed_methods_are_listed(
    api: Served, method: str, path: str, allow: str
) -> None:
    answer = api.client.request(method, path)
    assert problem_of(answer).status == 405
    assert answer.headers["allow"] == allow
    assert "access-control-allow-origin" not in answer.headers


def test_refusal_of_a_port_reaches_the_client_as_a_problem(api: Served) -> None:
    problem = problem_of(api.client.post(Route.QUERY, json={"query": "unconfigured"}))
    assert (problem.status, problem.type) == (409, ProblemType.NOT_CONFIGURED)


def test_wait_beyond_its_timeout_is_a_timed_out_problem(api: Served) -> None:
    problem = problem_of(api.client.post(Route.WAIT, json={"timeout_s": 0.01}))
    assert (problem.status, problem.type) == (409, ProblemType.TIMED_OUT)


def test_unexpected_error_is_logged_and_its_message_hidden_from_the_client(api: Served) -> None:
    with capture_logs() as logged:
        answer = api.client.post(Route.QUERY, json={"query": "raise"})
        assert problem_of(answer).status == 500
        assert SECRET not in answer.text
        assert api.client.post(Route.QUERY, json={"query": "still there"}).status_code == 200
    failures = [each for each in logged if each["event"] == "request_failed"]
    assert [(each["route"], each["exc_info"]) for each in failures] == [(Route.QUERY, True)]


@pytest.mark.slow
def test_an_export_that_fails_at_once_is_a_problem(api: Served) -> None:
    api.memory.export_chunks = -1
    try:
        assert problem_of(api.client.get(Route.EXPORT)).status == 500
    finally:
        api.memory.export_chunks = 2


@pytest.mark.slow
def test_export_that_fails_after_its_first_chunk_breaks_the_connection(api: Served) -> None:
    api.memory.export_chunks = 1
    try:
        with pytest.raises(httpx2.RemoteProtocolError):
            api.client.get(Route.EXPORT)
    finally:
        api.memory.export_chunks = 2


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nbad header\r\n\r\n", b"GET /" + b"a" * 200_000])
def test_invalid_http_gets_a_400_problem_and_the_connection_is_closed(api: Served, sent: bytes) -> None:
    with api.connect() as plain:
        plain.sendall(sent)
        head, _, body = read_all(plain).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert Problem.model_validate_json(body).type == ProblemType.BAD_REQUEST
