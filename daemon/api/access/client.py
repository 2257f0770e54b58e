"""A client: the documents that it may see, the requests that it may make, and the identity under which limits count it."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import Scope as RequestScope

from daemon.api.middleware.peers import request_peer
from daemon.contract.scope import ClientScope, Scope


class Right(StrEnum):
    """READ: ask, list, show, export. WRITE: add, remove, retry. ADMIN: operations on the whole memory or the daemon."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Client:
    """Sees the documents that have one of `labels`, or all documents if `labels` is None."""

    name: str
    labels: frozenset[str] | None
    rights: frozenset[Right]

    def limited(self, scope: Scope | None) -> Scope | None:
        """Returns `scope` limited to what this client may see. No other code combines scopes with clients."""
        if self.labels is None:
            return scope
        requested = scope or Scope()
        return ClientScope(
            **{name: getattr(requested, name) for name in Scope.model_fields},
            visible=tuple(sorted(self.labels)),
            client=self.name,
        )


EVERYONE = Client("", None, frozenset(Right))
"""Anyone who can connect, if the configuration names no client."""

OPERATOR = Client("[api] token_file", None, frozenset(Right))
"""The holder of the token in `[api] token_file`, if the configuration names clients."""

ITSELF = Client("hippod", frozenset(), frozenset({Right.READ}))
"""hippod's own process, which sends itself a first query over its socket. It sees no documents."""


@dataclass(frozen=True, slots=True)
class ClientRule:
    """A `[[client]]` and how it is identified: by the token in a file, or by the user or group of the Unix socket's peer."""

    client: Client
    token_file: Path | None = None
    uid: int | None = None
    gid: int | None = None


def identity_of(scope: RequestScope) -> str:
    """Returns the identity under which limits count a request: its `[[client]]`, else the token of `[api]`, else the user or
    address that connected.

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
