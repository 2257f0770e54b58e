"""Requests that hippod sends to its own Unix socket: the first query, and the watchdog's health check."""

import asyncio
from collections.abc import Awaitable, Callable

from daemon.api.listen import ListenError
from daemon.contract.choices import MODES, Filter
from daemon.contract.http.routes import Route
from daemon.contract.query import Mode, QueryRequest

HEALTH_REQUEST = f"GET {Route.HEALTH} HTTP/1.1\r\nHost: hippod\r\nConnection: close\r\n\r\n".encode()

Send = Callable[[bytes], Awaitable[int | None]]
"""Sends a request to hippod's own socket (`send_request`)."""


class SocketLost(ListenError):
    """The file of hippod's socket was deleted or replaced, so no client can connect."""


async def send_request(path: str, request: bytes) -> int | None:
    """Sends `request` to the Unix socket `path`; returns the HTTP status of the response.

    Returns None if the socket's mode excludes hippod's own user. Raises SocketLost if no process listens at `path`, and another
    OSError or EOFError if there is no response.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except PermissionError:
        return None
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise SocketLost(
            f"the socket {path} was deleted or replaced ({error.strerror}), so no client can connect; hippod ends, so that "
            "its supervisor starts it again with a new socket"
        ) from error
    try:
        writer.write(request)
        line = await reader.readline()
    finally:
        writer.close()
    if not line.startswith(b"HTTP/1.1 "):
        raise EOFError("closed without an answer")
    return int(line.split()[1])


async def first_query(send: Send, remote: bool, stop: asyncio.Task[bool]) -> None:
    """Checks that the socket answers queries; initialises the encoder, which is lazy.

    A `remote` encoder was contacted when it was loaded, and may be unavailable now. So the query uses a mode without
    embeddings. Raises RuntimeError if the query fails, and the errors of `send` if there is no response.
    """
    mode = next(Mode(each.name) for each in MODES.values() if not each.needs_encoder) if remote else None
    body = QueryRequest(query="what is there", k=1, mode=mode, filter=Filter.NONE).model_dump_json(exclude_none=True)
    head = f"POST {Route.QUERY} HTTP/1.1\r\nHost: hippod\r\nConnection: close\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    while not stop.done():
        status = await send(request)
        if status in (200, None):
            return
        if status != 503:  # status 503: waiting requests use all slots and are answered first
            raise RuntimeError(f"the first query was answered with {status}; see the log")
        await asyncio.wait([stop], timeout=0.1)
