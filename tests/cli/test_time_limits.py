"""hippoctl, its page and the MCP server wait for an answer equally long: as long as its route and mode may need."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from cli.client.address import Address
from cli.commands.ui import PageServer
from daemon.contract.http import client
from daemon.contract.http.client import answer_timeout_s
from daemon.contract.http.routes import Route
from daemon.mcp import tool_types, tools
from daemon.mcp.daemon_client import CallError, DaemonClient
from tests.cli.sample_answers import answer, passage
from tests.cli.scripted_daemon import Here, Scripted

SHORT_S, ANSWERED_S = 0.3, 1.0
TEXT = "Who built the rain gauge?"


@pytest.fixture
def slow(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """A daemon whose answers take longer than those that no model is asked for may take."""
    monkeypatch.setattr(client, "ANSWER_TIMEOUT_S", SHORT_S)

    def late(_: Any) -> dict[str, Any]:
        time.sleep(ANSWERED_S)
        return answer(passage(1, "T", "text"))

    scripted.answers["POST /v1/query"] = late
    return scripted


@pytest.fixture(params=["hippoctl", "page", "agent"])
def ask(request: pytest.FixtureRequest, here: Here, slow: Scripted) -> Callable[[dict[str, Any]], bool]:
    """Sends a query as one of the clients; returns whether the client waited for the answer."""

    def hippoctl(query: dict[str, Any]) -> bool:
        options = [part for key, value in query.items() for part in (f"--{key.replace('_', '-')}", str(value))]
        return here("query", TEXT, *options).code == 0

    def page(query: dict[str, Any]) -> bool:
        with PageServer(Address(slow.socket, "the test")) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            with httpx2.Client(headers={"Sec-Fetch-Site": "same-origin"}) as browser:
                browser.get(server.url)
                base = f"http://127.0.0.1:{server.server_port}"
                status = browser.post(f"{base}{Route.QUERY}", json={"query": TEXT, **query}).status_code
            server.shutdown()
        return status == 200

    def agent(query: dict[str, Any]) -> bool:
        async def search() -> bool:
            client = DaemonClient(str(slow.socket))
            try:
                await tools.search(client, tool_types.Search(query=TEXT, **query), silent)
            except CallError:
                return False
            finally:
                await client.close()
            return True

        return asyncio.run(search())

    async def silent(_at: float, _said: str) -> None: ...

    clients: dict[str, Callable[[dict[str, Any]], bool]] = {"hippoctl": hippoctl, "page": page, "agent": agent}
    return clients[request.param]


@pytest.mark.parametrize(
    ("query", "waits"),
    [
        ({}, True),  # the configured mode may ask a model
        ({"mode": "fused"}, True),
        ({"mode": "bm25"}, False),
        ({"mode": "dense"}, False),
        ({"mode": "bm25", "as_of": 3}, True),  # the index of an earlier commit is loaded
    ],
)
def test_query_timeout_of_every_client_depends_on_the_mode(
    ask: Callable[[dict[str, Any]], bool], query: dict[str, Any], waits: bool
) -> None:
    assert ask(query) is waits


def test_each_route_has_the_expected_timeout() -> None:
    assert answer_timeout_s("POST", Route.ASK, {"question": TEXT}) == 900
    assert answer_timeout_s("POST", Route.ASK, {"question": TEXT, "timeout_s": 1800.0}) == 1920
    assert answer_timeout_s("POST", Route.ASK, {"question": TEXT, "timeout_s": 5.0}) == 900
    assert answer_timeout_s("POST", Route.JUDGE, {}) == 900
    assert answer_timeout_s("POST", Route.QUERY, {"query": TEXT}) == 900
    assert answer_timeout_s("POST", Route.GRAPH, {"query": TEXT}) == 900
    assert answer_timeout_s("POST", Route.QUERY, {"query": TEXT, "mode": "dense"}) == 120
    assert answer_timeout_s("POST", Route.DOCUMENTS, b"{}") == 600
    assert answer_timeout_s("GET", Route.DOCUMENTS) == 120
    assert answer_timeout_s("POST", Route.BACKUP, {}) == 3600
    assert answer_timeout_s("GET", f"{Route.EXPORT}?format=jsonl") == 300
    assert answer_timeout_s("POST", Route.WAIT, {"timeout_s": 5.0}) == 15
    assert answer_timeout_s("POST", Route.WAIT, {}) is None
    assert answer_timeout_s("POST", Route.REEXTRACT, {"dry_run": True}) is None
    assert answer_timeout_s("POST", Route.REEXTRACT) == 120
