"""A client tries every route for hidden documents: it learns only what a memory without them would answer."""

import asyncio
import base64
import json
import signal
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from daemon.contract.answering.chat import ChatModel
from daemon.contract.http.routes import document_path
from daemon.mcp.tools import TOOLS
from daemon.services.documents.added_documents import check_document
from daemon.services.documents.document_labels import labelled_uri
from tests.daemon.access.conftest import QUESTION, SECRET, Memory, rewrite
from tests.e2e.real_hippod import PATIENCE_S, until

pytestmark = pytest.mark.daemon

MODES = ["fused", "hipporag2", "hipporag", "query-to-node", "ner-to-node", "bm25", "dense"]


@pytest.fixture
def visitor(memory: Memory) -> Iterator[httpx2.Client]:
    with memory.client("visitor") as client:
        yield client


@pytest.fixture
def clerk(memory: Memory) -> Iterator[httpx2.Client]:
    with memory.client("clerk") as client:
        yield client


@pytest.fixture
def board(memory: Memory) -> Iterator[httpx2.Client]:
    with memory.client("board") as client:
        yield client


def hidden(memory: Memory) -> list[str]:
    """Returns the URIs of everything that a visitor may not see."""
    return [uri for uri in memory.daemon.documents() if SECRET in uri and "#open" not in uri]


def without_echo(text: str, sent: str) -> str:
    """Returns an answer without the text that the client sent itself."""
    return text.replace(sent, "").replace(json.dumps(sent)[1:-1], "")


def test_permitted_client_sees_the_hidden_documents(memory: Memory, board: httpx2.Client) -> None:
    found = board.post("/v1/query", json={"query": QUESTION, "k": 20}).json()
    assert SECRET in json.dumps(found)
    listed = {each["uri"] for each in board.get("/v1/documents").json()["documents"]}
    assert listed == set(hidden(memory))
    assert len(listed) == 5


@pytest.mark.parametrize("mode", MODES)
def test_no_query_mode_or_scope_returns_hidden_documents(visitor: httpx2.Client, mode: str) -> None:
    body = {"query": QUESTION, "k": 100, "mode": mode, "explain": True}
    answer = visitor.post("/v1/query", json=body)
    assert answer.status_code == 200
    assert answer.json()["passages"]
    assert SECRET not in answer.text
    for scope in ({"labels": ["board"]}, {"source": "added"}, {"in": ["file:///"]}, {"where": {"topic": SECRET}}):
        text = visitor.post("/v1/query", json=body | {"scope": scope}).text
        assert SECRET not in text, scope
    assert visitor.post("/v1/query", json=body | {"scope": {"labels": ["board"]}}).json()["passages"] == []


def test_past_query_returns_no_hidden_documents(memory: Memory, visitor: httpx2.Client) -> None:
    for commit in range(1, memory.daemon.status()["commit"] + 1):
        answer = visitor.post("/v1/query", json={"query": QUESTION, "k": 100, "as_of": commit})
        assert answer.status_code in (200, 409)
        assert SECRET not in answer.text


@pytest.mark.parametrize(
    "path", ["/v1/status", "/v1/scopes", "/v1/documents", "/v1/export", "/page/overview", "/v1/sessions"]
)
def test_read_routes_reveal_no_hidden_text_or_label(memory: Memory, visitor: httpx2.Client, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 200
    assert SECRET not in answer.text
    assert "board" not in answer.text


def test_counts_include_only_documents_that_the_client_sees(memory: Memory, visitor: httpx2.Client) -> None:
    now = visitor.get("/v1/status").json()
    exported = [json.loads(line)["kind"] for line in visitor.get("/v1/export").text.splitlines()]
    assert (now["documents"], now["failed"], now["pending"]) == (4, 1, 0)
    assert (now["passages"], now["phrases"], now["triples"]) == tuple(
        exported.count(kind) for kind in ("passage", "phrase", "triple")
    )
    assert [each["name"] for each in now["sources"]] == [str(memory.daemon.folders[1])]
    assert "progress" not in now
    assert visitor.post("/v1/wait", json={"timeout_s": 60}).json()["documents"] == 4
    metrics = memory.daemon.http.get("/metrics").text.splitlines()
    held = {line.split()[0]: float(line.split()[1]) for line in metrics if line.startswith("hippod_scope")}
    assert 1 <= held["hippod_scopes"] <= 32 and held["hippod_scope_bytes"] > 0
    graphs = [visitor.get("/v1/export", params={"format": kind}) for kind in ("graphml", "igraph")]
    assert all(SECRET.encode() not in each.content for each in graphs)


def test_hidden_document_gets_the_same_answer_as_a_missing_one(
    memory: Memory, visitor: httpx2.Client, clerk: httpx2.Client
) -> None:
    whole = memory.daemon.ask("GET", document_path(hidden(memory)[0]))
    ids = [passage["id"] for passage in whole["passages"]]
    keys = [*hidden(memory), *ids, SECRET, f"{SECRET} wages", json.dumps(["solveig aas", "earns", f"{SECRET} crowns"])]
    for key in keys:
        there, nowhere = visitor.get(document_path(key)), visitor.get(document_path(f"x{key}"))
        assert there.status_code == nowhere.status_code == 404
        assert without_echo(there.text, key) == without_echo(nowhere.text, f"x{key}")
        for body in ({"phrase": key}, {"passage": key}):
            graph = visitor.post("/v1/graph", json=body)
            assert graph.status_code == 404 and SECRET not in without_echo(graph.text, key)
        removal = clerk.request("DELETE", "/v1/documents", json={"uris": [key]}).json()
        assert removal == {"removed": 0, "missing": 1, "missing_uris": [key]}
        retried = clerk.post("/v1/retry", json={"uris": [key]}).json()
        assert retried == {"requeued": 0, "missing_uris": [key]}
    container = memory.daemon.folders[2].as_uri() + "/lines.jsonl"
    assert SECRET not in visitor.get("/v1/documents", params={"prefix": "file:"}).text.replace(container, "")
    assert set(hidden(memory)) <= set(memory.daemon.documents())


def test_graph_contains_only_facts_that_the_client_sees(visitor: httpx2.Client) -> None:
    answer = visitor.post("/v1/graph", json={"query": QUESTION, "nodes": 200})
    assert answer.json()["nodes"]
    assert SECRET not in answer.text
    assert SECRET not in visitor.post("/v1/graph", json={"phrase": "solveig aas", "nodes": 200}).text


@pytest.mark.parametrize("how", [{}, {"steps": 2}, {"passages": True}, {"deep": True, "steps": 2, "session": "mine"}])
def test_ask_sends_no_hidden_text_to_the_model_and_lists_only_own_sessions(
    memory: Memory, visitor: httpx2.Client, board: httpx2.Client, how: dict[str, Any]
) -> None:
    assert board.post("/v1/ask", json={"question": QUESTION, "k": 20} | how).status_code == 200
    assert SECRET in json.dumps([call.body for call in memory.model.calls])
    memory.model.calls.clear()
    answer = visitor.post("/v1/ask", json={"question": QUESTION, "k": 20} | how)
    assert answer.status_code == 200
    assert SECRET not in answer.text
    assert memory.model.calls
    assert SECRET not in json.dumps([call.body for call in memory.model.calls])
    assert SECRET not in visitor.get("/v1/sessions").text
    if "session" in how:
        assert answer.json()["session"]["questions"] == 0
        assert [each["name"] for each in visitor.get("/v1/sessions").json()["sessions"]] == ["mine"]
        assert visitor.request("DELETE", "/v1/sessions", json={"names": ["mine"]}).json()["removed"] == 1
        assert [each["name"] for each in board.get("/v1/sessions").json()["sessions"]] == ["mine"]


@pytest.mark.parametrize("model", list(ChatModel))
def test_chat_and_streamed_answers_contain_no_hidden_text(memory: Memory, visitor: httpx2.Client, model: str) -> None:
    memory.model.calls.clear()
    body = {"model": model, "messages": [{"role": "user", "content": QUESTION}]}
    for stream in (False, True):
        answer = visitor.post("/v1/chat/completions", json=body | {"stream": stream})
        assert answer.status_code == 200
        assert SECRET not in answer.text
    assert SECRET not in visitor.get("/v1/models").text
    steps = {"question": QUESTION, "k": 20, "deep": True, "steps": 1}
    traced = visitor.post("/v1/ask", json=steps, headers={"accept": "text/event-stream"})
    assert traced.status_code == 200 and traced.text.startswith("event:")
    assert SECRET not in traced.text
    assert memory.model.calls
    assert SECRET not in json.dumps([call.body for call in memory.model.calls])


def test_ask_without_retrieval_and_judge_send_no_hidden_text_to_the_model(
    memory: Memory, visitor: httpx2.Client
) -> None:
    memory.model.calls.clear()
    assert visitor.post("/v1/ask", json={"question": QUESTION, "mode": "none"}).status_code == 200
    judged = {"question": QUESTION, "answer": "So it is.", "criterion": "diversity"}
    assert visitor.post("/v1/judge", json=judged).json()["score"] == 70.0
    assert len(memory.model.calls) == 2
    assert SECRET not in json.dumps([call.body for call in memory.model.calls])


def test_cached_filter_results_are_not_shared_between_clients(
    memory: Memory, visitor: httpx2.Client, clerk: httpx2.Client
) -> None:
    asked = {"query": "Who built the mill of Ternby?", "filter": "llm", "mode": "hipporag2"}
    calls = []
    for client in (visitor, visitor, clerk, clerk):
        before = len(memory.model.calls)
        assert client.post("/v1/query", json=asked).status_code == 200
        calls.append([call.purpose for call in memory.model.calls[before:]])
    assert calls == [["filter"], [], ["filter"], []]


def test_events_mention_only_documents_that_the_client_sees(memory: Memory, visitor: httpx2.Client) -> None:
    heard: list[str] = []
    listening = threading.Event()

    def listen() -> None:
        with visitor.stream("GET", "/v1/events") as answer:
            for line in answer.iter_lines():
                listening.set()
                heard.append(line)
                if "the-end" in line and line.startswith("data") and '"indexed"' in line:
                    return

    thread = threading.Thread(target=listen)
    thread.start()
    assert listening.wait(PATIENCE_S)
    daemon = memory.daemon
    (daemon.folders[0] / f"{SECRET}-later.md").write_text(f"# Later\n\n{SECRET} came later.\n")
    daemon.wait()
    daemon.add({"id": "changing", "text": "Seen at first.", "labels": ["public"]})
    daemon.wait()
    daemon.add({"id": "changing", "text": f"Now {SECRET}.", "labels": ["board"]})
    daemon.wait()
    (daemon.folders[0] / f"{SECRET}-later.md").unlink()
    daemon.wait()
    daemon.ask("DELETE", "/v1/documents", json={"uris": ["added:changing"]})
    daemon.add({"id": "the-end", "text": "The end.", "labels": ["public"]})
    thread.join(PATIENCE_S)
    assert SECRET not in "\n".join(heard)
    events = [json.loads(line[6:]) for line in heard if line.startswith("data: ")]
    told = [
        (event["event"], event.get("uri")) for event in events if event["event"] in ("indexed", "removed", "failed")
    ]
    assert told == [("indexed", "added:changing"), ("removed", "added:changing"), ("indexed", "added:the-end")]
    assert [(each["documents"], each["removed"]) for each in events if each["event"] == "commit"] == [(1, 0), (0, 1)]
    assert [each["id"] for each in events] == list(range(1, len(events) + 1))
    daemon.ask("DELETE", "/v1/documents", json={"uris": ["added:the-end"]})


def test_adding_or_deleting_an_id_of_a_hidden_document_leaves_it_unchanged(
    memory: Memory, clerk: httpx2.Client, visitor: httpx2.Client
) -> None:
    taken = f"minutes-{SECRET}"
    before = memory.daemon.ask("GET", document_path(f"added:{taken}"))
    free = clerk.post("/v1/documents", json={"documents": [{"id": "free", "text": "Mine."}]})
    mine = clerk.post("/v1/documents", json={"documents": [{"id": taken, "text": "Mine as well."}]})
    assert (free.json()["documents"], mine.json()["documents"]) == (
        ["added:[public]/free"],
        [f"added:[public]/{taken}"],
    )
    gone = clerk.post("/v1/documents", json={"documents": [{"id": taken, "deleted": True}]})
    assert gone.status_code == 200
    memory.daemon.wait()
    after = memory.daemon.ask("GET", document_path(f"added:{taken}"))
    assert (before["passages"], before["document"]["committed_at"]) == (
        after["passages"],
        after["document"]["committed_at"],
    )
    assert visitor.get(document_path("added:[public]/free")).json()["metadata"]["labels"] == ["public"]
    assert clerk.request("DELETE", "/v1/documents", json={"uris": ["added:[public]/free"]}).json()["removed"] == 1


def test_adding_a_document_with_a_label_of_other_clients_is_refused(memory: Memory, clerk: httpx2.Client) -> None:
    for labels in (["board"], ["public", "board"], [], "public", [1], ["*"]):
        refused = clerk.post("/v1/documents", json={"documents": [{"id": "x", "text": "x", "labels": labels}]})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["field"] == "documents[0].labels"
        assert "board" not in refused.text
    with memory.client("writer") as writer:  # sees two labels, so it must choose one
        unsaid = {"documents": [{"id": "x", "text": "x"}]}
        assert writer.post("/v1/documents", json=unsaid).status_code == 422
        assert writer.get("/v1/documents").status_code == 403
    handed = json.dumps({"id": "inner", "text": f"A {SECRET} of the clerk's own.", "labels": ["board"]})
    file = {"id": "file", "filename": "x.jsonl", "content_base64": base64.b64encode(handed.encode()).decode()}
    assert clerk.post("/v1/documents", json={"documents": [file]}).status_code == 200
    memory.daemon.wait()
    try:
        with memory.client("board") as board:
            assert "of the clerk's own" not in board.get("/v1/export").text
    finally:
        assert clerk.request("DELETE", "/v1/documents", json={"uris": ["added:[public]/file"]}).json()["removed"] == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/metrics"),
        ("GET", "/v1/extraction"),
        ("GET", "/v1/costs"),
        ("POST", "/v1/reextract"),
        ("POST", "/v1/reencode"),
        ("POST", "/v1/backfill"),
        ("POST", "/v1/confirm"),
        ("POST", "/v1/import"),
        ("POST", "/v1/verify"),
        ("POST", "/v1/backup"),
        ("POST", "/v1/documents"),
        ("DELETE", "/v1/documents"),
        ("POST", "/v1/remove-source"),
        ("POST", "/v1/retry"),
    ],
)
def test_request_without_the_required_right_is_refused_with_403(visitor: httpx2.Client, method: str, path: str) -> None:
    refused = visitor.request(method, path, json={})
    assert refused.status_code == 403
    assert refused.json()["detail"].startswith('The client "visitor" lacks the right ')


def test_retry_of_all_documents_retries_only_those_that_the_client_sees(memory: Memory, clerk: httpx2.Client) -> None:
    def attempts() -> dict[str, int]:
        return {uri: each["attempts"] for uri, each in memory.daemon.documents(state="failed").items()}

    before = attempts()
    assert clerk.post("/v1/retry", json={}).json()["requeued"] == 1
    memory.daemon.wait()
    tried = {uri for uri, count in attempts().items() if count != before[uri]}
    assert tried == {memory.daemon.folders[1].as_uri() + "/broken.docx"}


def test_mcp_tools_return_no_hidden_text_and_remove_no_hidden_document(memory: Memory) -> None:
    arguments: dict[str, list[dict[str, Any]]] = {
        "search": [{"query": QUESTION, "k": 50, "why": True}, {"query": QUESTION, "scope": {"labels": ["board"]}}],
        "ask": [{"question": QUESTION, "k": 50}, {"question": QUESTION, "deep": True, "steps": 1}],
        "show": [{"key": "solveig aas"}, {"key": "ternby"}],
        "list": [{}, {"state": "failed"}, {"prefix": "file:"}],
        "read": [{"uri": memory.daemon.folders[1].as_uri() + "/mill.md"}],
        "status": [{}],
        "add": [{"text": "An agent was here."}],
        "forget": [{"uris": [labelled_uri(check_document({"text": "An agent was here."})[1], ["public"])]}],
    }
    assert set(arguments) == set(TOOLS)

    async def use(client: Client) -> list[str]:
        said = [repr(await client.call_tool(name, each)) for name, calls in arguments.items() for each in calls]
        resources = await client.list_resources()
        said.append(repr(resources))
        for uri in hidden(memory):
            answer = await client.call_tool("read", {"uri": uri})
            assert answer.is_error
            forgotten = await client.call_tool("forget", {"uris": [uri]})
            assert forgotten.structured_content["removed"] == 0
        return said

    async def connect(token: str) -> list[str]:
        headers = {"authorization": f"Bearer {token}"}
        url = f"http://{memory.daemon.sections['api']['tcp']}/mcp"
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http), read_timeout_seconds=PATIENCE_S) as client,
        ):
            return await use(client)

    said = asyncio.run(connect(memory.tokens["clerk"]))
    assert "is_error=True" not in "".join(said)
    assert SECRET not in "".join(said)
    assert set(hidden(memory)) <= set(memory.daemon.documents())


def test_changed_labels_and_rights_apply_after_a_reload(memory: Memory, visitor: httpx2.Client) -> None:
    daemon = memory.daemon
    commit = daemon.status()["commit"]
    tables = daemon.sections["client"]
    before = dict(tables[1])
    begun, ended = threading.Event(), threading.Event()

    def follow() -> None:
        with memory.client("visitor") as client, client.stream("GET", "/v1/events") as answer:
            for _ in answer.iter_lines():
                begun.set()
        ended.set()

    threading.Thread(target=follow, daemon=True).start()

    def reload() -> None:
        count = len(daemon.events("reloaded"))
        rewrite(daemon)
        daemon.signal(signal.SIGHUP)
        until(lambda: len(daemon.events("reloaded")) > count, "the configuration is read again")

    try:
        assert begun.wait(PATIENCE_S)
        tables[1] |= {"labels": ["board"]}
        reload()
        assert SECRET in visitor.get("/v1/documents").text
        assert "mill.md" not in visitor.get("/v1/documents").text
        assert ended.wait(PATIENCE_S)  # event readers must connect again
        daemon.sections["folder"][0]["labels"] = ["nobody"]
        reload()
        left = {each["uri"] for each in visitor.get("/v1/documents").json()["documents"]}
        assert left == {uri for uri in hidden(memory) if not uri.startswith(daemon.folders[0].as_uri())}
        tables[1] |= {"rights": ["write"]}
        reload()
        assert visitor.get("/v1/documents").status_code == 403
        del tables[1]
        reload()
        assert visitor.get("/v1/documents").status_code == 401
    finally:
        daemon.sections["folder"][0]["labels"] = ["board"]
        daemon.sections["client"] = [tables[0], before, *[each for each in tables[1:] if each["name"] != "visitor"]]
        reload()
    assert visitor.get("/v1/documents").status_code == 200
    assert daemon.status()["commit"] == commit


def test_request_without_a_valid_client_token_is_refused_with_401(memory: Memory) -> None:
    tcp = f"http://{memory.daemon.sections['api']['tcp']}"
    for headers in ({}, {"authorization": "Bearer token-of-nobody"}, {"authorization": "Basic eDp5"}):
        assert httpx2.get(f"{tcp}/v1/status", headers=headers).status_code == 401
    answer = memory.daemon.http.get("/v1/documents", headers={"authorization": "Bearer token-of-visitor"})
    assert SECRET not in answer.text and answer.json()["documents"]
    assert memory.daemon.http.get("/v1/status", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert memory.daemon.http.get("/healthz").status_code == 200
