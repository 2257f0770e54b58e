"""A client: the documents that it may see and the requests that it may make."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from daemon.contract.scope import ClientScope, Scope


class Right(StrEnum):
    """READ: ask, list, show, export. WRITE: add, remove, retry. ADMIN: operations on the whole memory or the daemon."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Client:
    """A client of the memory. It sees the documents that have one of `labels`, or all documents if `labels` is None."""

    name: str
    labels: frozenset[str] | None
    rights: frozenset[Right]

    def limited(self, scope: Scope | None) -> Scope | None:
        """Returns `scope` limited to what this client may see. Scopes and clients are combined only here."""
        if self.labels is None:
            return scope
        asked = scope or Scope()
        return ClientScope(
            **{name: getattr(asked, name) for name in Scope.model_fields},
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
    """One `[[client]]` with its identification: the token in a file, or the user or group of the Unix socket's peer."""

    client: Client
    token_file: Path | None = None
    uid: int | None = None
    gid: int | None = None
