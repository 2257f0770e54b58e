"""What stands before the app on TCP: the right name, no other site's page, then proof that the client may come in.

The Unix socket has its file mode instead.

How to add to it. Something that is to be served on TCP alone, to those who may come in, is an ASGI app of its own: give it
to `ApiServer(..., tcp_apps={"/page": app})`; it gets the requests below that path once this guard has let them through, and
nothing of it exists on the Unix socket. Another way of proving oneself than the bearer token (a link that works once and
opens a session with a cookie, say) is a `Proof`: give it to `ApiServer(..., proofs=[...])`. A request comes in when any
proof accepts it. A proof sees the whole request but its body, so it can hold for some paths only; comparing secrets takes
`hmac.compare_digest`, and what a proof makes (a session's secret) is its own to forget.
"""

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.api.errors import Forbidden, Unauthorised, WrongHost

log = structlog.get_logger(__name__)


class Proof(Protocol):
    """One way in which a TCP client proves that it may come in."""

    def admits(self, scope: Scope) -> bool:
        """Whether this request does. Called for every request, on the event loop; it must not block."""
        ...


class TokenFile:
    """The token in a file, read again whenever the file changes. A file that cannot be read lets nobody in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._digest: bytes | None = None
        self._complaint = ""

    def read(self) -> bytes:
        """The token. OSError or ValueError (with a sentence) when there is none."""
        token = self._path.read_bytes().strip()
        if not token:
            raise ValueError(f"token file {self._path} is empty; put one line with a secret of your own into it")
        return token

    def move(self, path: Path) -> None:
        """Another file from now on."""
        self._path, self._seen = path, None

    def admits(self, scope: Scope) -> bool:
        """A `Proof`: the token as `Authorization: Bearer TOKEN`."""
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.accepts(token.strip().encode("latin-1"))

    def accepts(self, token: bytes) -> bool:
        """In a time that does not depend on how much of the token is right."""
        self._refresh()
        return self._digest is not None and compare_digest(self._digest, sha256(token).digest())

    def _refresh(self) -> None:
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)
            if seen != self._seen:
                self._digest = sha256(self.read()).digest()
                self._seen, self._complaint = seen, ""
        except (OSError, ValueError) as error:
            self._digest = self._seen = None
            if str(error) != self._complaint:  # once, not at every request
                self._complaint = str(error)
                log.error("token_unreadable", error=str(error), hint="nobody is let in over TCP until it can be read")


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
        if not any(proof.admits(scope) for proof in self._proofs):
            raise Unauthorised(
                "Send the token of the configured token_file as Authorization: Bearer TOKEN.",
                headers={"WWW-Authenticate": 'Bearer realm="hippod"'},
            )
        await self._chosen(scope["path"])(scope, receive, send)

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
