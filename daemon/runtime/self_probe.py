"""Requests that hippod sends to its own Unix socket: a first query, and the watchdog's health check."""

import asyncio
from collections.abc import Awaitable, Callable

from daemon.config import Config
from daemon.contract.choices import MODES, Filter
from daemon.contract.http.routes import Route
from daemon.contract.query import QueryRequest
from daemon.contract.retrieval import Mode
from memory.encoder.registry import ENCODER_BACKENDS

HEALTH_REQUEST = f"GET {Route.HEALTH} HTTP/1.1\r\nHost: hippod\r\nConnection: close\r\n\r\n".encode()

Send = Callable[[bytes], Awaitable[int | None]]
"""Sends a request to hippod's own socket, see `send_request`."""


async def send_request(path: str, request: bytes, owned: bool) -> int | None:
    """Returns the HTTP status of the response to `request` on the socket `path`. Raises OSError or EOFError without a response.

    Returns None if the outcome proves nothing: the socket's mode excludes hippod's own user, or the socket's file is gone and
    belongs not to this process (`owned`) but to the service manager, which may pass the socket to another hippod.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except PermissionError:
        return None
    except (FileNotFoundError, ConnectionRefusedError):
        if owned:
            raise
        return None
    try:
        writer.write(request)
        line = await reader.readline()
    finally:
        writer.close()
    if not line.startswith(b"HTTP/1.1 "):
        raise EOFError("closed without an answer")
    return int(line.split()[1])


async def first_query(send: Send, config: Config, stop: asyncio.Task[bool]) -> None:
    """Checks that the socket answers queries, and triggers the encoder's lazy initialisation. Raises RuntimeError.

    An encoder with a server was already contacted when it was opened, and the server may be unavailable. The query then uses
    a mode that needs no embedding.
    """
    remote = ENCODER_BACKENDS[config.encoder.backend].needs_server
    mode = next(Mode(each.name) for each in MODES.values() if not each.needs_encoder) if remote else None
    body = QueryRequest(query="what is there", k=1, mode=mode, filter=Filter.NONE).model_dump_json(exclude_none=True)
    head = f"POST {Route.QUERY} HTTP/1.1\r\nHost: hippod\r\nConnection: close\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    while not stop.done():
        status = await send(request)
        if status in (200, None):
            return
        if status != 503:  # 503: waiting requests take all slots; they are answered first
            raise RuntimeError(f"the first query was answered with {status}; see the log")
        await asyncio.wait([stop], timeout=0.1)
