"""Which requests count as one client's: the key of all limits that a client has a share of."""

from starlette.datastructures import Headers
from starlette.types import Scope

from daemon.api.access.client import OPERATOR, Client
from daemon.api.middleware.peers import request_peer


def identity_of(scope: Scope) -> str:
    """The `[[client]]` that a request comes from, else the token of `[api]`, else the user or address that connected.

    An agent of the MCP server over HTTP asks over hippod's own connection, with its token: the token says who it is.
    """
    client = scope.get("state", {}).get("client")
    peer = request_peer(scope)
    if isinstance(client, Client):
        if client.name:
            return f"client {client.name}"
        if peer.side == "tcp" or (peer.is_own_process and "authorization" in Headers(scope=scope)):
            return f"client {OPERATOR.name}"
    return peer.client
