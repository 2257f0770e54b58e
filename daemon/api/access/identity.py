"""The identity under which a client's requests are counted, in every limit that has a share per client."""

from starlette.datastructures import Headers
from starlette.types import Scope

from daemon.api.access.client import OPERATOR, Client
from daemon.api.middleware.peers import request_peer


def identity_of(scope: Scope) -> str:
    """Returns the `[[client]]` of a request, or else the token of `[api]`, or else the user or address that connected.

    The MCP server over HTTP forwards an agent's request on hippod's own connection together with the agent's token, so the
    token identifies the agent.
    """
    client = scope.get("state", {}).get("client")
    peer = request_peer(scope)
    if isinstance(client, Client):
        if client.name:
            return f"client {client.name}"
        if peer.side == "tcp" or (peer.is_own_process and "authorization" in Headers(scope=scope)):
            return f"client {OPERATOR.name}"
    return peer.client
