"""Answers for clients that wait in the service manager's socket for a hippod that cannot start.

Without an answer they would go on waiting, and each of them would make the service manager start hippod again.
"""

import json
import socket
from collections.abc import MutableMapping
from contextlib import suppress

from daemon.api.listen import ListenError, inherited_socket
from daemon.contract.http.problem_type import ProblemType

CLIENTS_MAX = 2048
"""`Backlog=` of the socket's unit."""
SEND_TIMEOUT_S = 1.0
REQUEST_BYTES = 65536
DETAIL = (
    "hippod cannot start: `systemctl status` of its unit and its log (`journalctl -u hippod`) say why and what to do"
)
"""Without the reason itself, which may name files that a client may not know."""


def refuse_waiting_clients(environ: MutableMapping[str, str]) -> int:
    """Sends 503 to all clients that wait in an inherited socket; returns their number. No effect without such a socket."""
    try:
        listening = inherited_socket(environ)
    except ListenError:
        return 0
    if listening is None:
        return 0
    refused = 0
    with listening:
        while refused < CLIENTS_MAX:
            try:
                client, _ = listening.accept()
            except OSError:  # nobody waits any more
                break
            refused += 1
            with suppress(OSError), client:
                _refuse(client)
    return refused


def _refuse(client: socket.socket) -> None:
    problem = {"type": ProblemType.CANNOT_START, "title": "hippod cannot start", "status": 503, "detail": DETAIL}
    body = json.dumps(problem).encode()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    client.settimeout(SEND_TIMEOUT_S)
    client.sendall(head.encode() + body)
    # A socket that is closed with unread data resets the connection, and the client would lose the answer.
    client.setblocking(False)
    with suppress(BlockingIOError):
        while client.recv(REQUEST_BYTES):
            pass
