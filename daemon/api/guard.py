"""What stands before the app on TCP: the right name, no other site's page, then proof that the client may come in.

The Unix socket has its file mode instead.

How to add to it. Something that is to be served on TCP alone, to those who may come in, is an ASGI app of its own: give it
to `ApiServer(..., tcp_apps={"/page": app})`; it gets the requests below that path once this guard has let them through, and
nothing of it exists on the Unix socket. Another way of proving oneself than the bearer token (a link that works once and
opens a session with a cookie, say) is a `Proof`: give it to `ApiServer(..., proofs=[...])`. A request comes in when any
proof accepts it. A proof sees the whole request but its body, so it can hold for some paths only; comparing secrets takes
`hmac.compare_digest`, and what a proof makes (a session's secret) is its own to forget. A body has its deadline already
(`daemon.api.body.Pace`), whoever reads it; how long it may be is its reader's to say.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.api.errors import Forbidden, Unauthorised, WrongHost
from daemon.config import read_token
from daemon.logs import mask

log = structlog.get_logger(__name__)
LOOK_S = 5.0
"""How long a look at the token file may take: it takes less than a millisecond where its drive is there."""


class Proof(Protocol):
    """One way in which a TCP client proves that it may come in."""

    async def admits(self, scope: Scope) -> bool:
        """Whether this request does. Called for every request, on the event loop; it must not block."""
        ...


@dataclass(frozen=True, slots=True)
class _Found:
    """What a look at the token file found. `mark`: by which the next look knows whether the file has changed."""

    mark: tuple[Path, int, int, int, int] | None = None
    digest: bytes | None = None
    complaint: str = ""


class TokenFile:
    """The token in a file, which is looked at whenever somebody comes with one and read again when it has changed.

    A file that the start would not take lets nobody in. Looking has a thread of its own: a drive that hangs holds up
    those who come with a token, and nobody else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = _Found()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="token")

    def move(self, path: Path) -> None:
        """Another file from now on."""
        self._path = path

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def admits(self, scope: Scope) -> bool:
        """A `Proof`: the token as `Authorization: Bearer TOKEN`."""
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and await self._accepts(token.strip().encode("latin-1"))

    async def _accepts(self, token: bytes) -> bool:
        """In a time that does not depend on how much of the token is right."""
        await self._look()
        digest = self._found.digest
        return digest is not None and compare_digest(digest, sha256(token).digest())

    async def _look(self) -> None:
        before = self._found
        try:
            async with asyncio.timeout(LOOK_S):
                found = await asyncio.get_running_loop().run_in_executor(self._thread, _look, self._path, before)
        except TimeoutError:
            found = _Found(complaint=f"{self._path} could not be read in {LOOK_S:g} s; is its drive there?")
        if found.complaint and found.complaint != self._found.complaint:  # once, not at every request
            log.error("token_unreadable", error=found.complaint, hint="nobody is let in over TCP until it can be read")
        self._found = found


def _look(path: Path, before: _Found) -> _Found:
    try:
        there = path.stat()
        mark = (path, there.st_mtime_ns, there.st_size, there.st_ino, there.st_ctime_ns)
        if mark == before.mark:
            return before
        token = read_token(path)
    except OSError as error:
        return _Found(complaint=f"{path}: {error.strerror}")
    except ValueError as error:
        return _Found(complaint=f"[api] token_file: allowed is {error}")
    mask(token)  # before anybody can have come with it
    return _Found(mark, sha256(token.encode()).digest())


class Guard:
    """WrongHost for a Host that is not this daemon's (a web page that rebinds a name to it), Forbidden for a page of another
    site, Unauthorised without proof. `apps` are served below their paths, all else by `app`."""

    def __init__(
        self, app: ASGIApp, host: str, proofs: Sequence[Proof], apps: Mapping[str, ASGIApp] | None = None
    ) -> None:
        self._app = app
        self._apps = dict(apps or {})
        self._hosts = {host.lower(), "localhost", "127.0.0.1", "::1"}
        self._anywhere = _is_wildcard(host)
        if self._anywhere:
            self._hosts.add(socket.gethostname().lower())
        self._proofs = tuple(proofs)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        name = host_name(headers.get("host", ""))
        if not self._serves(name):
            raise WrongHost(f"Host {name[:100]!r} is not one this daemon answers to; use the configured address.")
        if not _of_this_site(scope["method"], headers):
            raise Forbidden("A page of another site asked for this; hippod answers no site but its own.")
        if not await self._admitted(scope):
            raise Unauthorised(
                "Send the token of the configured token_file as Authorization: Bearer TOKEN.",
                headers={"WWW-Authenticate": 'Bearer realm="hippod"'},
            )
        await self._chosen(scope["path"])(scope, receive, send)

    async def _admitted(self, scope: Scope) -> bool:
        for proof in self._proofs:
            if await proof.admits(scope):
                return True
        return False

    def _chosen(self, path: str) -> ASGIApp:
        for below, app in self._apps.items():
            if path == below or path.startswith(below.rstrip("/") + "/"):
                return app
        return self._app

    def _serves(self, name: str) -> bool:
        return name in self._hosts or (self._anywhere and _is_address(name))


def _of_this_site(method: str, headers: Headers) -> bool:
    """Whether no browser says that the request comes from another site. Programs that are no browsers say nothing.

    A link that somebody follows is let through to the proofs: the page it is on learns nothing of the answer.
    """
    followed = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    if not followed and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origins = headers.getlist("origin")
    host = headers.get("host", "").strip().lower()
    return all(urlsplit(origin).netloc.lower() == host != "" for origin in origins)


def host_name(header: str) -> str:
    """The name in a Host header, without port and brackets, in lower case."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def _is_address(name: str) -> bool:
    """An address cannot be rebound, so any of the machine's own is as good as the configured one."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_wildcard(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified
