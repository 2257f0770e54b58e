"""An ASGI app that speaks MCP over streamable HTTP. `daemon.api.middleware.tcp_auth` stands before it: host, other
sites' pages, token.

Its tools call the daemon's own Unix socket, as `hippoctl mcp` does, with the token of whoever asks: so the API alone decides
what they may see and do. No session is
kept between requests: a client goes on after a restart of hippod.
"""

import asyncio

import structlog
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from daemon.errors import NotFound, NotReady
from daemon.mcp.daemon_client import DaemonClient
from daemon.mcp.server import memory_server

BODY_BYTES = 4 * 1024 * 1024
"""Largest message, an added document for instance."""

PATH = "/mcp"

log = structlog.get_logger(__name__)


class McpApp:
    """`start` before the first request, `stop` after the last; both on the event loop that serves it."""

    def __init__(self, socket: str, *, write: bool) -> None:
        self._client = DaemonClient(socket, for_others=True)
        self._manager = StreamableHTTPSessionManager(
            memory_server(self._client, write=write), stateless=True, max_request_body_size=BODY_BYTES
        )
        self._running: asyncio.Task[None] | None = None
        self._started = asyncio.Event()
        self._stopping = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != PATH:
            raise NotFound(f"Nothing is served below {PATH}.")
        if not self._started.is_set() or self._stopping.is_set():
            raise NotReady("hippod is starting or stopping; try again in a moment.")
        await self._manager.handle_request(scope, receive, send)

    async def start(self) -> None:
        self._running = asyncio.create_task(self._run())
        await self._started.wait()

    async def _run(self) -> None:
        """Enters and leaves the SDK's task group, which has to be one task's work."""
        async with self._manager.run():
            self._started.set()
            await self._stopping.wait()

    async def stop(self) -> None:
        """Ends what is still being answered."""
        self._stopping.set()
        if self._running is not None:
            await self._running
        await self._client.close()
