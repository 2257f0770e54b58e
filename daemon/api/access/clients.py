"""Identifies the client of each request."""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.api.access.client import EVERYONE, ITSELF, OPERATOR, Client, ClientRule
from daemon.api.access.identity import identity_of
from daemon.api.access.token_file import TokenFile
from daemon.api.middleware.concurrency import ConcurrencyLimit
from daemon.api.middleware.peers import Peer, request_peer
from daemon.api.middleware.rate_limit import RateLimiter
from daemon.errors import Unauthorised

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Token:
    file: TokenFile
    client: Client


class Clients:
    """The clients that the configuration declares. Use from one event loop only; `use` may replace the clients at any time."""

    def __init__(
        self,
        rules: Sequence[ClientRule] = (),
        token_file: Path | None = None,
        token_ended: Callable[[], None] = lambda: None,
    ) -> None:
        """`token_file` is that of `[api]`. `token_ended` is called when a token that was valid stops being valid."""
        self._token_ended = token_ended
        self._rules: tuple[ClientRule, ...] = ()
        self._tokens: tuple[_Token, ...] = ()
        self._token_file: Path | None = None
        self.use(rules, token_file)

    def use(self, rules: Sequence[ClientRule], token_file: Path | None) -> None:
        """Replaces the clients and the token file from the next request on."""
        known = {each.file.path: each.file for each in self._tokens}
        wanted = [(rule.token_file, rule.client, "[[client]] token_file") for rule in rules if rule.token_file]
        if token_file is not None and token_file not in {path for path, _, _ in wanted}:
            wanted.append((token_file, OPERATOR if rules else EVERYONE, "[api] token_file"))
        self._rules, self._token_file = tuple(rules), token_file
        self._tokens = tuple(_Token(known.get(path) or TokenFile(path, key), who) for path, who, key in wanted)
        for file in known.values():
            if not any(each.file is file for each in self._tokens):
                file.close()

    def use_rules(self, rules: Sequence[ClientRule]) -> bool:
        """Replaces the clients; returns whether they differ from the previous ones."""
        changed = tuple(rules) != self._rules
        self.use(rules, self._token_file)
        return changed

    def use_token_file(self, path: Path | None) -> None:
        if path != self._token_file:
            self._token_ended()
        self.use(self._rules, path)

    def close(self) -> None:
        for token in self._tokens:
            token.file.close()

    async def identify(self, peer: Peer, headers: Headers) -> Client | None:
        """Returns the client of a request, or None if the peer of the Unix socket is not a client.

        Requests on the Unix socket may have a token too. Raises Unauthorised if the token is wrong, or missing on TCP.
        """
        if peer.side == "unix":
            if not self._rules:
                return EVERYONE
            if "authorization" not in headers:
                return self._by_peer(peer)
        client = await self._by_token(headers)
        if client is None:
            raise Unauthorised(
                "Send the token of the configured token_file as Authorization: Bearer TOKEN.",
                headers={"WWW-Authenticate": 'Bearer realm="hippod"'},
            )
        return client

    def _by_peer(self, peer: Peer) -> Client | None:
        """Returns the client of the first rule, in the order of the configuration, that matches the peer."""
        for rule in self._rules:
            if (rule.uid is not None and rule.uid == peer.uid) or (rule.gid is not None and rule.gid in peer.groups):
                return rule.client
        return ITSELF if peer.pid == os.getpid() else None

    async def _by_token(self, headers: Headers) -> Client | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        digest = sha256(token.strip().encode("latin-1")).digest()
        fitting = [each for each in self._tokens if each.file.has(digest)]
        # If the token is known, only its own file is checked, so a hanging drive under another token file does no harm.
        if any(await asyncio.gather(*(each.file.refresh() for each in fitting or self._tokens))):
            self._token_ended()
        fitting = [each for each in self._tokens if each.file.has(digest)]
        if len(fitting) > 1:
            log.error("token_of_several", clients=[each.client.name for each in fitting], hint="give each its own")
        return fitting[0].client if len(fitting) == 1 else None


class ClientMiddleware:
    """Identifies the client of each request, and applies the client's request rate and its share of the connections.

    Stores the client in the request's `state`.
    """

    def __init__(
        self,
        app: ASGIApp,
        clients: Clients,
        rate_limiter: RateLimiter,
        requests: ConcurrencyLimit,
        stopping: asyncio.Event,
    ) -> None:
        """The limit `requests` does not apply while the server stops: requests that were already sent are still answered."""
        self._app = app
        self._clients = clients
        self._rate_limiter = rate_limiter
        self._requests = requests
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = request_peer(scope)
        client = await self._clients.identify(peer, Headers(scope=scope))
        scope.setdefault("state", {})["client"] = client
        identity = identity_of(scope)
        if peer.is_own_process or identity != peer.client:  # `RequestBoundary` has counted all others
            self._rate_limiter.count(identity)
        with nullcontext() if self._stopping.is_set() else self._requests.slot(identity):
            await self._app(scope, receive, send)
