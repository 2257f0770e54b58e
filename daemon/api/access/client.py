"""A client: what it may see, and what it may do."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from daemon.contract.scope import ClientScope, Scope


class Right(StrEnum):
    """READ: ask, list, show, export. WRITE: add, remove, try again. ADMIN: what is about the whole memory or the daemon."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Client:
    """`labels`: it sees the documents that have one of them; None: it sees all."""

    name: str
    labels: frozenset[str] | None
    rights: frozenset[Right]

    def limited(self, scope: Scope | None) -> Scope | None:
        """What of `scope` there is for this client. This is the only place where the two meet."""
        if self.labels is None:
            return scope
        asked = scope or Scope()
        return ClientScope(
            **{name: getattr(asked, name) for name in Scope.model_fields},
            visible=tuple(sorted(self.labels)),
            client=self.name,
        )


EVERYONE = Client("", None, frozenset(Right))
"""Whoever can connect, where the configuration names no client."""

OPERATOR = Client("[api] token_file", None, frozenset(Right))
"""Who has the token of `[api] token_file`."""

ITSELF = Client("hippod", frozenset(), frozenset({Right.READ}))
"""hippod's own process, which asks itself a first query over its socket. It sees no document."""


@dataclass(frozen=True, slots=True)
class ClientRule:
    """One `[[client]]`: who it is, by the token in a file, or by the user or group of the Unix socket's peer."""

    client: Client
    token_file: Path | None = None
    uid: int | None = None
    gid: int | None = None
