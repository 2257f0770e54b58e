"""Every route answers as the contract says, and the OpenAPI document describes it."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from daemon.contract.answering.ask import AskRequest, AskResponse
from daemon.contract.base import Problem
from daemon.contract.documents import AddResponse, DocumentList, RemoveResponse, RetryResponse, ShowDocument
from daemon.contract.http.routes import ProblemType, Route, document_path
from daemon.contract.query import QueryResponse, Tokens
from daemon.contract.status import DaemonState, Health, Status
from daemon.contract.transfer import ImportResponse
from tests.daemon.api.harness import Served, served, until

OPERATIONS = {
    ("/v1/query", "post"),
    ("/v1/ask", "post"),
    ("/v1/confirm", "post"),
    ("/v1/judge", "post"),
    ("/v1/chat/completions", "post"),
    ("/v1/models", "get"),
    ("/v1/graph", "post"),
    ("/v1/documents", "get"),
    ("/v1/documents", "post"),
    ("/v1/documents", "delete"),
    ("/v1/documents/{uri}", "get"),
    ("/v1/retry", "post"),
    ("/v1/remove-source", "post"),
    ("/v1/scopes", "get"),
    ("/v1/import", "post"),
    ("/v1/status", "get"),
    ("/v1/wait", "post"),
    ("/v1/reextract", "post"),
    ("/v1/reencode", "post"),
    ("/v1/backfill", "post"),
    ("/v1/extraction", "get"),
    ("/v1/costs", "get"),
    ("/v1/events", "get"),
    ("/v1/export", "get"),
    ("/v1/verify", "post"),
    ("/v1/backup", "post"),
    ("/v1/sessions", "get"),
    ("/v1/sessions", "delete"),
    ("/healthz", "get"),
    ("/metrics", "get"),
    ("/openapi.json", "get"),
}


@pytest.fixture(scope="module")
def api() -> Iterator[Served]:
    with served() as running:
        yield running


def test_query_returns_passages_with_their_location(api: Served) -> None:
    answer = api.client.post(Route.QUERY, json={"query": "who?", "k": 3, "mode": "dense"})
    assert answer.headers["content-type"] == "application/json"
    found = QueryResponse.model_validate_json(answer.content)
    assert (found.query, found.mode, found.passages[0].location) == ("who?", "dense", {"line": 3})


def test_ask_without_an_llm_is_refused_and_names_the_llm_section(api: Served) -> None:
    answer = api.client.post(Route.ASK, json={"question": "who?"})
    assert answer.status_code == 409
    problem = Problem.model_validate_json(answer.content)
    assert problem.type == ProblemType.NOT_CONFIGURED
    assert "[llm]" in problem.detail


def test_ask_with_an_llm_returns_its_answer() -> None:
    class Reader:
        async def ask(self, request: AskRequest) -> AskResponse:
            tokens = Tokens(prompt=2, completion=1)
            return AskResponse(
                question=request.question, answer="Ada", citations=[], steps=[], tokens=tokens, took_ms=1.0
            )

    with served(asks=Reader()) as running:
        answer = running.client.post(Route.ASK, json={"question": "who?", "deep": True, "steps": 2})
        assert AskResponse.model_validate_json(answer.content).answer == "Ada"


def test_documents_are_added_from_one_json_body(api: Served) -> None:
    body = {"documents": [{"id": "json:1", "text": "x"}, {"id": "json:2", "text": "y", "triples": [["a", "b", "c"]]}]}
    answer = api.client.post(Route.DOCUMENTS, json=body)
    assert AddResponse.model_validate_json(answer.content).documents == ["json:1", "json:2"]
    assert api.memory.documents_by_uri["json:2"]["triples"] == [["a", "b", "c"]]


def test_documents_are_added_from_json_lines_in_any_pieces(api: Served) -> None:
    lines = (
        b'{"id": "nd:1", "text": "\xc3\xa9"}\n\n{"id": "nd:2", "text": "b\\n"}\r\n{"id": "nd:3", "text": "no line end"}'
    )
    pieces = (lines[at : at + 7] for at in range(0, len(lines), 7))
    answer = api.client.post(Route.DOCUMENTS, content=pieces, headers={"Content-Type": "application/x-ndjson"})
    assert AddResponse.model_validate_json(answer.content).documents == ["nd:1", "nd:2", "nd:3"]
    assert api.memory.documents_by_uri["nd:1"]["text"] == "é"


@pytest.mark.parametrize("inside", ["path", "file", "uri", "url"])
def test_path_in_an_added_document_is_stored_as_text_and_not_read(api: Served, inside: str) -> None:
    api.client.post(Route.DOCUMENTS, json={"documents": [{"id": "p:1", "text": "x", inside: "/etc/passwd"}]})
    assert api.memory.documents_by_uri["p:1"] == {"id": "p:1", "text": "x", inside: "/etc/passwd"}


def test_documents_are_listed_with_prefix_and_limit(api: Served) -> None:
    api.client.post(Route.DOCUMENTS, json={"documents": [{"id": f"ls:{n}", "text": "x"} for n in range(5)]})
    answer = api.client.get(Route.DOCUMENTS, params={"prefix": "ls:", "limit": 2, "state": "indexed"})
    found = DocumentList.model_validate_json(answer.content)
    assert [document.uri for document in found.documents] == ["ls:0", "ls:1"]


def test_documents_are_removed_by_body_and_by_parameter(api: Served) -> None:
    names = ["file:///rm a#1", "file:///rm%20b", "rm:3"]
    api.client.post(Route.DOCUMENTS, json={"documents": [{"id": name, "text": "x"} for name in names]})
    by_body = api.client.request("DELETE", Route.DOCUMENTS, json={"uris": [names[0], "rm:absent"]})
    found = RemoveResponse.model_validate_json(by_body.content)
    assert (found.removed, found.missing, found.missing_uris) == (1, 1, ["rm:absent"])
    by_parameter = api.client.delete(Route.DOCUMENTS, params={"uri": names[1:]})
    assert RemoveResponse.model_validate_json(by_parameter.content).removed == 2


@pytest.mark.parametrize(
    "uri",
    [
        "file:///plain/a.txt",
        "file:///with%20space/100%25.md",
        "file:///lines.jsonl#42",
        "file:///lines.jsonl#a/b?c=d&e",
        "file:///name%0Awith%0Abreaks",
        "a phrase\nwith a break\n",
        "kafka://topic/ключ",
        "file:///%FF%FE",
        "a//b/../c/./d",
        '["s", "p", "o"]',
    ],
)
def test_any_uri_is_shown_under_its_percent_encoding(api: Served, uri: str) -> None:
    api.memory.documents_by_uri[uri] = {}
    answer = api.client.get(document_path(uri), params={"limit": 9})
    found = ShowDocument.model_validate_json(answer.content)
    assert (found.document.uri, found.counts) == (uri, {"limit": 9})


def test_document_uri_with_unencoded_slashes_is_found(api: Served) -> None:
    api.memory.documents_by_uri["file:///a/b.txt"] = {}
    answer = api.client.get(f"{Route.DOCUMENTS}/{quote('file:///a/b.txt', safe=':/')}")
    assert ShowDocument.model_validate_json(answer.content).document.uri == "file:///a/b.txt"


@pytest.mark.parametrize(("body", "requeued"), [(None, 0), ({}, 0), ({"uris": ["a", "b"]}, 2)])
def test_retry_requeues_given_documents_or_all_failed_ones(
    api: Served, body: dict[str, Any] | None, requeued: int
) -> None:
    answer = api.client.post(Route.RETRY, json=body) if body is not None else api.client.post(Route.RETRY)
    assert RetryResponse.model_validate_json(answer.content).requeued == requeued


def test_import_receives_the_complete_streamed_body(api: Served) -> None:
    before = api.memory.imported
    answer = api.client.post(Route.IMPORT, content=(b"x" * 50_000 for _ in range(20)))
    assert ImportResponse.model_validate_json(answer.content).skipped == 3
    assert api.memory.imported - before == 1_000_000


def test_an_export_is_json_lines(api: Served) -> None:
    answer = api.client.get(Route.EXPORT)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line)["kind"] for line in answer.text.splitlines()] == ["phrase", "phrase"]
    assert api.memory.export_formats[-1] == "jsonl"


@pytest.mark.parametrize(("name", "type_"), [("graphml", "application/graphml+xml"), ("igraph", "application/gzip")])
def test_export_is_sent_in_the_requested_format(api: Served, name: str, type_: str) -> None:
    answer = api.client.get(Route.EXPORT, params={"format": name})
    assert answer.headers["content-type"].startswith(type_)
    assert api.memory.export_formats[-1] == name


def test_export_in_an_unknown_format_is_refused_and_known_formats_listed(api: Served) -> None:
    answer = api.client.get(Route.EXPORT, params={"format": "pickle"})
    assert answer.status_code == 422
    assert "jsonl, graphml, igraph" in answer.json()["detail"]


def test_status_reports_source_lag_and_health_is_503_during_the_start(api: Served) -> None:
    assert Status.model_validate_json(api.client.get(Route.STATUS).content).sources[0].lag == 4
    assert api.client.get(Route.HEALTH).status_code == 200
    api.memory.stage = DaemonState.STARTING
    try:
        answer = api.client.get(Route.HEALTH)
        assert (answer.status_code, Health.model_validate_json(answer.content).state) == (503, "starting")
    finally:
        api.memory.stage = DaemonState.READY


def test_metrics_are_prometheus_text_and_count_requests(api: Served) -> None:
    api.client.get(document_path("nothing of this name"))
    counted = 'hippod_http_requests_total{method="GET",route="/v1/documents/{uri}",status="404"}'
    # A request is counted after its answer was sent.
    until(lambda: counted in api.client.get(Route.METRICS).text, "the request is counted")
    answer = api.client.get(Route.METRICS)
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert "nothing" not in answer.text
    assert 'hippod_source_lag{kind="folder",name="drive"} 4.0' in answer.text
    assert "process_resident_memory_bytes" in answer.text


def test_openapi_lists_every_route_of_the_contract(api: Served) -> None:
    paths = api.client.get(Route.OPENAPI).json()["paths"]
    assert {(path, method) for path, methods in paths.items() for method in methods} == OPERATIONS


def test_openapi_refers_only_to_what_it_defines(api: Served) -> None:
    document = api.client.get(Route.OPENAPI).json()
    wanted = {each.rpartition("/")[2] for each in _refs(document)}
    assert wanted <= set(document["components"]["schemas"])
    assert {"Problem", "QueryRequest", "QueryResponse", "AddRequest", "Event"} <= set(document["components"]["schemas"])


def test_openapi_gives_every_error_as_a_problem(api: Served) -> None:
    for path, methods in api.client.get(Route.OPENAPI).json()["paths"].items():
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                if status.startswith(("4", "5")) and (path, status) != ("/healthz", "503"):
                    assert list(answer["content"]) == ["application/problem+json"], (path, method, status)


def test_openapi_names_parameters_and_bodies(api: Served) -> None:
    paths = api.client.get(Route.OPENAPI).json()["paths"]
    assert [p["name"] for p in paths["/v1/documents"]["get"]["parameters"]] == [
        "state",
        "prefix",
        "limit",
        "after",
        "scope",
    ]
    assert paths["/v1/documents/{uri}"]["get"]["parameters"][0]["in"] == "path"
    assert set(paths["/v1/documents"]["post"]["requestBody"]["content"]) == {"application/json", "application/x-ndjson"}
    assert paths["/v1/query"]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith(
        "QueryRequest"
    )


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            yield from _refs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _refs(inner)
