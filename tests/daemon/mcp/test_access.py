"""Access of agents: read-only by default, and over TCP nothing without the token."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from cli.client.address import Address
from cli.commands.mcp import CONFIG_VARIABLE, configured
from cli.errors import CommandError
from daemon.mcp.tools import TOOLS
from tests.daemon.mcp.sdk_client import CONNECTIONS, TOKEN, command, talk, text_of, url, with_tcp
from tests.e2e.real_hippod import ROOT, Daemon, clean_environment, write_config

pytestmark = pytest.mark.daemon

OFFER = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT}
ACCEPT = {"accept": "application/json, text/event-stream"}
LET_IN = {"authorization": f"Bearer {TOKEN}", **ACCEPT}


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def refused(client: Client) -> None:
    assert [name for name in await names(client) if name != "ask"] == ["search", "show", "list", "read", "status"]
    for tool, arguments in (("add", {"text": "x"}), ("forget", {"uris": ["added:note-001"]})):
        with pytest.raises(MCPError, match=r"writing is disabled here.*write = true"):
            await client.call_tool(tool, arguments)


def piped(words: list[str], sent: str, environment: dict[str, str]) -> dict[Any, Any]:
    """Returns the answers by id. Standard input stays open until the last request, 1, is answered: its end stops the server."""
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(sent.encode("utf-8", "surrogatepass"))
        server.stdin.flush()
        answers: dict[Any, Any] = {}
        while 1 not in answers:
            line = server.stdout.readline()
            assert line, f"it ended after {answers}"
            answer = json.loads(line)
            answers[answer.get("id")] = answer
        server.stdin.close()
        assert server.wait(60) == 0
    return answers


def test_hippoctl_mcp_is_read_only_unless_configured_otherwise(memory: Daemon) -> None:
    talk(memory, CONNECTIONS[0], refused)
    assert "added:note-001" in memory.documents()


def test_hippoctl_mcp_offers_writing_tools_if_mcp_write_is_true(memory: Daemon, tmp_path: Path) -> None:
    sections = {"api": {"socket": str(memory.socket)}, "mcp": {"write": True}}
    config = write_config(tmp_path / "config.toml", sections)
    words = [part for part in command(memory) if part not in ("--socket", str(memory.socket))]
    environment = clean_environment(tmp_path) | {"HIPPOD_CONFIG": str(config)}
    answers = piped(words, "\n".join(map(json.dumps, [HELLO, OFFER])) + "\n", environment)
    assert "add" in [tool["name"] for tool in answers[1]["result"]["tools"]]


@pytest.mark.parametrize(
    ("written", "variable", "writes"),
    [
        ("", None, False),
        ("[mcp]\nwrite = false\n", None, False),
        ("[mcp]\nwrite = true\n", None, True),
        ("[mcp]\nwrite = true\n", "false", False),
        ("", "TRUE", True),
    ],
)
def test_writing_is_off_unless_the_configuration_says_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, variable: str | None, writes: bool
) -> None:
    (tmp_path / "c.toml").write_text(written)
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(CONFIG_VARIABLE, variable)
    assert configured(Address(tmp_path / "s", "here", tmp_path / "c.toml")) is writes
    assert configured(Address(tmp_path / "s", "--socket")) is (variable == "TRUE")


@pytest.mark.parametrize("written", ['write = "yes"', "write = 1"])
def test_mcp_write_other_than_true_or_false_is_an_error(tmp_path: Path, written: str) -> None:
    (tmp_path / "c.toml").write_text(f"[mcp]\n{written}\n")
    with pytest.raises(CommandError, match="allowed are true and false"):
        configured(Address(tmp_path / "s", "here", tmp_path / "c.toml"))


def test_invalid_messages_on_standard_input_do_not_end_the_session(memory: Daemon) -> None:
    lines = ["{", "null", "[]", '{"jsonrpc":"2.0","id":7}', '{"jsonrpc":"2.0","id":8,"method":"dance"}', "\ud800"]
    sent = "\n".join([json.dumps(HELLO), *lines, json.dumps(OFFER), ""])
    answers = piped(command(memory), sent, clean_environment(memory.home))
    assert {"error"} <= set(answers[8])
    assert answers[1]["result"]["tools"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_mcp_request_without_the_token_gets_the_same_401_as_any_path(memory: Daemon, method: str) -> None:
    for headers in ({}, {"authorization": "Bearer wrong"}, {"mcp-session-id": "0" * 32}):
        refused = httpx2.request(method, url(memory), headers={**ACCEPT, **headers}, json=OFFER)
        other = httpx2.request(method, url(memory, "/v1/nothing"), headers={**ACCEPT, **headers}, json=OFFER)
        assert (refused.status_code, refused.content) == (401, other.content)
        assert set(refused.headers) == set(other.headers)


def test_mcp_request_of_another_site_or_host_name_is_refused(memory: Daemon) -> None:
    for headers, status in (
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example", "origin": "http://evil.example"}, 421),
    ):
        assert httpx2.post(url(memory), headers={**LET_IN, **headers}, json=OFFER).status_code == status


def test_invalid_mcp_message_over_http_is_refused(memory: Daemon) -> None:
    for body in (b"{", b"null", b"[]", b'{"jsonrpc":"2.0","id":7}', b"\xff"):
        headers = {**LET_IN, "content-type": "application/json"}
        assert 400 <= httpx2.post(url(memory), headers=headers, content=body).status_code < 500
    large = httpx2.post(url(memory), headers={**LET_IN, "content-type": "application/json"}, content=b" " * 5_000_000)
    assert large.status_code == 413
    assert httpx2.get(url(memory, "/mcp/other"), headers=LET_IN).status_code == 404


def test_mcp_is_not_served_on_the_unix_socket(memory: Daemon) -> None:
    assert memory.http.post("/mcp", json=OFFER).status_code == 404


def test_mcp_tools_work_once_an_absent_daemon_starts_and_are_read_only(tmp_path: Path) -> None:
    daemon = with_tcp(tmp_path / "away")

    async def over_stdio(client: Client) -> None:
        assert "ask" in await names(client)  # an unreachable daemon cannot report that it has no model
        away = await client.call_tool("status", {})
        assert away.is_error and "No hippod answers on" in text_of(away)
        with pytest.raises(MCPError, match="No hippod answers on"):
            await client.list_resources()
        daemon.start()
        assert (await client.call_tool("status", {})).structured_content["state"] == "ready"
        assert "ask" not in await names(client)
        without = await client.call_tool("ask", {"question": "who?"})
        assert without.is_error and "No language model is configured" in text_of(without)
        await refused(client)

    async def over_http(client: Client) -> None:
        await refused(client)
        assert "ask" not in await names(client)
        daemon.restart()
        assert (await client.call_tool("search", {"query": "anything"})).structured_content["passages"] == []

    try:
        talk(daemon, CONNECTIONS[1], over_stdio)
        talk(daemon, CONNECTIONS[3], over_http)
        assert daemon.stop() == 0
    finally:
        daemon.close()


def test_the_manual_names_every_tool_and_argument() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (.*?) ?\| ", (ROOT / "docs" / "how-to" / "mcp.md").read_text("utf-8"), re.MULTILINE
    )
    documented = {name: set(re.findall(r"`(\w+)`", takes)) for name, takes in rows}
    assert documented == {name: set(tool.arguments.model_fields) for name, tool in TOOLS.items()}
