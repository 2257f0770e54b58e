"""A client's view of earlier commits, through every route with a time: documents that it saw then and sees now."""

import asyncio
import json
from collections.abc import Iterator

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.daemon.access.conftest import Memory, rewrite
from tests.e2e.real_hippod import PATIENCE_S
from tests.e2e.security.two_clients import post, reload, two_clients

pytestmark = pytest.mark.daemon

QUESTION = "What did Solveig Aas sell in Ternby?"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with two_clients(tmp_path_factory.mktemp("past")) as found:
        yield found


def commit(memory: Memory) -> int:
    memory.daemon.wait()
    return int(memory.daemon.status()["commit"])


def add(memory: Memory, id: str, word: str, *labels: str) -> int:
    """Adds a document with these labels; returns its commit."""
    text = f"Solveig Aas sold {word} in Ternby. The {word} mill stands in Ternby."
    memory.daemon.add({"id": id, "title": f"About {word}", "text": text, "labels": list(labels)})
    return commit(memory)


def remove(memory: Memory, *ids: str) -> int:
    memory.daemon.ask("DELETE", "/v1/documents", json={"uris": [f"added:{id}" for id in ids]})
    return commit(memory)


def shows(memory: Memory, client: str, at: int | str, word: str) -> bool:
    answer = post(memory, client, "/v1/query", {"query": QUESTION, "k": 100, "as_of": at, "explain": True})
    assert answer.status_code == 200, answer.text
    return word in answer.text


def test_relabelled_then_removed_document_is_hidden_in_every_past_route(memory: Memory) -> None:
    public = add(memory, "plan", "xylographs", "public")
    moment = memory.daemon.documents()["added:plan"]["committed_at"]
    assert shows(memory, "visitor", public, "xylographs"), "there is something to hide"
    board = add(memory, "plan", "xylographs", "board")
    gone = remove(memory, "plan")
    bodies: list[tuple[str, dict[str, object]]] = [
        ("/v1/query", {"query": QUESTION, "k": 100, "explain": True}),
        ("/v1/query", {"query": QUESTION, "k": 100, "scope": {"in": ["added:"]}}),
        ("/v1/graph", {"query": QUESTION, "nodes": 200}),
        ("/v1/graph", {"phrase": "solveig aas", "nodes": 200}),
        ("/v1/ask", {"question": QUESTION, "k": 20}),
        ("/v1/ask", {"question": QUESTION, "k": 20, "steps": 2}),
        ("/v1/ask", {"question": QUESTION, "k": 20, "deep": True, "steps": 1}),
    ]
    memory.model.calls.clear()
    for at in (public, board, gone, moment):
        for path, body in bodies:
            answer = post(memory, "visitor", path, body | {"as_of": at})
            assert answer.status_code in (200, 404), answer.text
            assert "xylographs" not in answer.text, (path, body, at)
    assert "xylographs" not in json.dumps([call.body for call in memory.model.calls])
    assert [shows(memory, "board", at, "xylographs") for at in (public, board, gone)] == [False, True, False]
    memory.daemon.restart()
    assert [shows(memory, "visitor", at, "xylographs") for at in (public, board)] == [False, False]
    assert shows(memory, "board", board, "xylographs")


def test_removed_document_stays_visible_in_the_past_to_its_last_labels(memory: Memory) -> None:
    before = add(memory, "sale", "quilts", "public")
    remove(memory, "sale")
    assert shows(memory, "visitor", before, "quilts")
    assert not shows(memory, "board", before, "quilts")


def test_past_visibility_of_a_document_added_again_follows_its_last_labels(memory: Memory) -> None:
    first = add(memory, "back", "anchors", "public")
    remove(memory, "back")
    second = add(memory, "back", "bellows", "board")
    assert not shows(memory, "visitor", first, "anchors"), "it is the board's now"
    remove(memory, "back")
    assert not shows(memory, "visitor", first, "anchors"), "the board's was the last"
    third = add(memory, "back", "candles", "public")
    assert [shows(memory, "visitor", at, word) for at, word in ((first, "anchors"), (third, "candles"))] == [True, True]
    assert not shows(memory, "visitor", second, "bellows"), "the client did not see it then"
    remove(memory, "back")


def test_documents_of_two_clients_with_the_same_id_stay_separate_in_the_past(memory: Memory) -> None:
    for client, word in (("clerk", "dowels"), ("board", "easels")):
        document = {"id": "shared", "text": f"Solveig Aas sold {word} in Ternby."}
        assert post(memory, client, "/v1/documents", {"documents": [document]}).status_code == 200
    both = commit(memory)
    with memory.client("board") as board:
        board.request("DELETE", "/v1/documents", json={"uris": ["added:[board]/shared"]})
    with memory.client("clerk") as clerk:
        clerk.request("DELETE", "/v1/documents", json={"uris": ["added:[public]/shared"]})
    commit(memory)
    seen = {
        (who, word): shows(memory, who, both, word) for who in ("visitor", "board") for word in ("dowels", "easels")
    }
    assert {key for key, value in seen.items() if value} == {("visitor", "dowels"), ("board", "easels")}


def test_past_visibility_of_a_removed_file_follows_its_folders_current_labels(memory: Memory) -> None:
    daemon = memory.daemon
    file = daemon.folders[0] / "ledger.md"
    file.write_text("# Ledger\n\nSolveig Aas sold fenders in Ternby.\n")
    before = commit(memory)
    moved = daemon.folders[0] / "moved.md"
    file.rename(moved)
    commit(memory)
    assert shows(memory, "visitor", before, "fenders"), "under its old name"
    moved.unlink()
    commit(memory)
    assert shows(memory, "visitor", before, "fenders")
    daemon.sections["folder"][0]["labels"] = ["board"]
    reload(daemon)
    try:
        assert not shows(memory, "visitor", before, "fenders")
        assert shows(memory, "board", before, "fenders"), "by the labels of now the board saw it then"
    finally:
        daemon.sections["folder"][0]["labels"] = ["public"]
        reload(daemon)
    assert shows(memory, "visitor", before, "fenders")


def test_removed_file_of_an_unconfigured_folder_is_hidden_in_the_past(memory: Memory) -> None:
    daemon = memory.daemon
    file = daemon.folders[0] / "note.md"
    file.write_text("# Note\n\nSolveig Aas sold gimlets in Ternby.\n")
    before = commit(memory)
    file.unlink()
    commit(memory)
    assert shows(memory, "visitor", before, "gimlets")
    followed = daemon.sections["folder"]
    daemon.sections["folder"] = followed[1:]
    rewrite(daemon)
    daemon.restart()
    try:
        assert not shows(memory, "visitor", before, "gimlets")
    finally:
        daemon.sections["folder"] = followed
        rewrite(daemon)
        daemon.restart()


def test_mcp_search_of_the_past_shows_no_hidden_document(memory: Memory) -> None:
    public = add(memory, "secret", "halyards", "public")
    add(memory, "secret", "halyards", "board")
    remove(memory, "secret")

    async def search(token: str) -> str:
        headers = {"authorization": f"Bearer {token}"}
        url = f"http://{memory.daemon.sections['api']['tcp']}/mcp"
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http), read_timeout_seconds=PATIENCE_S) as client,
        ):
            return repr(await client.call_tool("search", {"query": QUESTION, "k": 50, "as_of": public}))

    said = asyncio.run(search(memory.tokens["visitor"]))
    assert "is_error=False" in said and "halyards" not in said


def test_routes_without_as_of_never_show_removed_documents(memory: Memory) -> None:
    add(memory, "over", "inkwells", "public")
    add(memory, "over", "inkwells", "board")
    remove(memory, "over")
    with memory.client("visitor") as visitor:
        for path in ("/v1/documents", "/v1/export", "/v1/scopes", "/v1/status", "/page/overview"):
            for query in ("", "?as_of=1"):
                assert "inkwells" not in visitor.get(path + query).text
        assert visitor.get("/v1/documents/added:over").status_code == 404
