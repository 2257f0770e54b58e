"""An ASGI app for MCP over streamable HTTP, behind the checks of `daemon.api.middleware.tcp_auth` (host, origin, token).

Its tools call the daemon's Unix socket, like `hippoctl mcp`, but with the token of the requester, so the API alone decides
what the requester may see and do. There are no sessions, so clients continue after a restart of hippod.
"""

import asyncio

import structlog
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from daemon.errors import NotFound, NotReady
from daemon.mcp.daemon_client import DaemonClient
from daemon.mcp.server import memory_server

BODY_BYTES = 4 * 1024 * 1024
"""Maximum size of a message, for example with an added document."""

PATH = "/mcp"

log = structlog.get_logger(__name__)


class McpApp:
    """The app. Call `start` before the first request and `stop` after the last, on the event loop that serves it."""

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
        """Enters and leaves the SDK's task group, which must happen in one task."""
        async with self._manager.run():
            self._started.set()
            await self._stopping.wait()

    async def stop(self) -> None:
        """Ends requests in progress, and closes the client."""
        self._stopping.set()
        if self._running is not None:
            await self._running
        await self._client.close()
