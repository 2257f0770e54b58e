"""Identifies the client of each request by its token or by the Unix socket's peer. A token file is read again when it
changes."""

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.api.access.client import EVERYONE, ITSELF, OPERATOR, Client, ClientRule, identity_of
from daemon.api.middleware.peers import Peer, request_peer
from daemon.api.middleware.request_limits import ConcurrencyLimit, RateLimiter
from daemon.config_types.path_validators import read_token
from daemon.errors import Unauthorised
from daemon.observe.logs import mask

TOKEN_READ_TIMEOUT_S = 5.0
"""A read takes less than a millisecond if the drive responds."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _TokenState:
    """The result of the last check of the token file. `stamp` changes when the file changes."""

    stamp: tuple[Path, int, int, int, int] | None = None
    digest: bytes | None = None
    complaint: str = ""


class TokenFile:
    """The token in a file. `refresh` checks the file, and reads it again if it has changed.

    If hippod would refuse the file's content at its start, no token is accepted. Each file is read in its own thread, so a
    hanging drive delays only the requests that send a token.
    """

    def __init__(self, path: Path, key: str = "[api] token_file") -> None:
        """`key` is the setting that names the file."""
        self.path = path
        self._key = key
        self._state = _TokenState()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="token")

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def has(self, digest: bytes) -> bool:
        """Returns whether the file contained the token with this SHA-256 digest when it was last checked."""
        known = self._state.digest
        # All digests have one length, and the comparison takes constant time: timing reveals nothing about the token.
        return known is not None and compare_digest(known, digest)

    async def refresh(self) -> bool:
        """Checks the file; returns whether the previous token is no longer valid."""
        before = self._state
        try:
            async with asyncio.timeout(TOKEN_READ_TIMEOUT_S):
                found = await asyncio.get_running_loop().run_in_executor(
                    self._thread, _read_if_changed, self.path, before, self._key
                )
        except TimeoutError:
            found = _TokenState(
                complaint=f"{self.path} could not be read within {TOKEN_READ_TIMEOUT_S:g} s; check whether its drive is mounted"
            )
        if found.complaint and found.complaint != self._state.complaint:  # log it once, not at every request
            log.error(
                "token_unreadable",
                error=found.complaint,
                hint="requests with this token are refused meanwhile",
            )
        self._state = found
        return before.digest is not None and found.digest != before.digest


def _read_if_changed(path: Path, before: _TokenState, key: str) -> _TokenState:
    try:
        status = path.stat()
        stamp = (path, status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)
        if stamp == before.stamp:
            return before
        token = read_token(path)
    except OSError as error:
        return _TokenState(complaint=f"{path}: {error.strerror}")
    except ValueError as error:
        return _TokenState(complaint=f"{key}: allowed is {error}")
    mask(token)  # before any log line could contain the token
    return _TokenState(stamp, sha256(token.encode()).digest())


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
        """`token_file`: the `token_file` of `[api]`. `token_ended` is called when a valid token becomes invalid."""
        self._token_ended = token_ended
        self._rules: tuple[ClientRule, ...] = ()
        self._tokens: tuple[_Token, ...] = ()
        self._token_file: Path | None = None
        self.use(rules, token_file)

    def use(self, rules: Sequence[ClientRule], token_file: Path | None) -> None:
        """Replaces the clients and the token file from the next request on."""
        files = {each.file.path: each.file for each in self._tokens}
        declared = [(rule.token_file, rule.client, "[[client]] token_file") for rule in rules if rule.token_file]
        if token_file is not None and token_file not in {path for path, _, _ in declared}:
            declared.append((token_file, OPERATOR if rules else EVERYONE, "[api] token_file"))
        self._rules, self._token_file = tuple(rules), token_file
        self._tokens = tuple(_Token(files.get(path) or TokenFile(path, key), client) for path, client, key in declared)
        for file in files.values():
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
        matches = [each for each in self._tokens if each.file.has(digest)]
        # If the token is known, check only its own file: another token file may be on a hanging drive.
        if any(await asyncio.gather(*(each.file.refresh() for each in matches or self._tokens))):
            self._token_ended()
        matches = [each for each in self._tokens if each.file.has(digest)]
        if len(matches) > 1:
            log.error(
                "token_of_several",
                clients=[each.client.name for each in matches],
                hint="give each client its own token",
            )
        return matches[0].client if len(matches) == 1 else None


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
        if peer.is_own_process or identity != peer.client:  # `RequestBoundary` has counted other requests
            self._rate_limiter.count(identity)
        with nullcontext() if self._stopping.is_set() else self._requests.slot(identity):
            await self._app(scope, receive, send)
