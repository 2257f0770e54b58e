"""The official SDK's client, over standard input and output or HTTP, in either generation of the protocol."""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.e2e.real_hippod import Daemon, clean_environment

TOKEN = "sesame-open"
PATIENCE_S = 90.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass(frozen=True)
class Connection:
    """A way to connect: `stdio` or `http`, and the SDK's name of the protocol's generation."""

    transport: str
    mode: str

    def __str__(self) -> str:
        return f"{self.transport}-{self.mode}"


CONNECTIONS = [
    Connection("stdio", "auto"),
    Connection("stdio", "legacy"),
    Connection("http", "auto"),
    Connection("http", "legacy"),
]
Script = Callable[[Client], Awaitable[Any]]


def command(daemon: Daemon, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "cli.main", "--socket", str(daemon.socket), "mcp", *arguments]


def url(daemon: Daemon, path: str = "/mcp") -> str:
    return f"http://{daemon.sections['api']['tcp']}{path}"


def talk(daemon: Daemon, connection: Connection, script: Script, *arguments: str) -> Any:
    """Connects, runs the script, and returns its result. `arguments` are for `hippoctl mcp`."""

    async def over_stdio() -> Any:
        first, *rest = command(daemon, *arguments)
        server = StdioServerParameters(command=first, args=rest, env=clean_environment(daemon.home))
        async with Client(server, mode=connection.mode, read_timeout_seconds=PATIENCE_S) as client:
            return await script(client)

    async def over_http() -> Any:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http,
            Client(
                streamable_http_client(url(daemon), http_client=http),
                mode=connection.mode,
                read_timeout_seconds=PATIENCE_S,
            ) as client,
        ):
            return await script(client)

    return asyncio.run(over_stdio() if connection.transport == "stdio" else over_http())


def text_of(answer: CallToolResult) -> str:
    """Returns the text of a tool's answer."""
    content = answer.content[0]
    assert isinstance(content, TextContent)
    return content.text


def with_tcp(daemon_home: Any, **sections: Any) -> Daemon:
    """Returns a daemon, not started, that also listens on TCP."""
    daemon_home.mkdir(parents=True, exist_ok=True)
    token = daemon_home / "token"
    token.write_text(TOKEN)
    api = {"tcp": f"127.0.0.1:{free_port()}", "token_file": str(token)}
    return Daemon(daemon_home, api=api, **sections)
