"""What a request on TCP must pass before the app: the right host name, no other site's page, and the token.

The Unix socket needs none of it: its file mode says who may connect.

An app that is to be served on TCP alone goes behind the same checks: `ApiServer(..., tcp_apps={"/path": app})`. It gets the
requests below its path, and does not exist on the Unix socket. The deadline for a request's body holds for it, too
(`daemon.api.request_body.BodyDeadline`); it must limit the body's length by itself.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.config_types.path_validators import read_token
from daemon.contract.http.same_origin import same_origin
from daemon.errors import Forbidden, Unauthorised, WrongHost
from daemon.observe.logs import mask

log = structlog.get_logger(__name__)
TOKEN_READ_TIMEOUT_S = 5.0
"""How long reading the token file may take: less than a millisecond where its drive answers."""


@dataclass(frozen=True, slots=True)
class _TokenState:
    """What the last look at the token file found. `stamp` changes with the file."""

    stamp: tuple[Path, int, int, int, int] | None = None
    digest: bytes | None = None
    complaint: str = ""


class TokenFile:
    """The token in a file. Each request with a token looks at the file, and reads it again when it has changed.

    A file that a start would not accept lets nobody in. A thread of its own reads: a drive that hangs delays those who come
    with a token, and nobody else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state = _TokenState()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="token")

    def move(self, path: Path) -> None:
        """Read another file from now on."""
        self._path = path

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def accepts(self, headers: Headers) -> bool:
        """Whether the request has the token, as `Authorization: Bearer TOKEN`."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return False
        await self._refresh()
        digest = self._state.digest
        # Digests have one length, and comparing them takes the same time however much of the token is right.
        return digest is not None and compare_digest(digest, sha256(token.strip().encode("latin-1")).digest())

    async def _refresh(self) -> None:
        before = self._state
        try:
            async with asyncio.timeout(TOKEN_READ_TIMEOUT_S):
                found = await asyncio.get_running_loop().run_in_executor(
                    self._thread, _read_if_changed, self._path, before
                )
        except TimeoutError:
            found = _TokenState(
                complaint=f"{self._path} could not be read in {TOKEN_READ_TIMEOUT_S:g} s; is its drive there?"
            )
        if found.complaint and found.complaint != self._state.complaint:  # once, not at every request
            log.error("token_unreadable", error=found.complaint, hint="nobody is let in over TCP until it can be read")
        self._state = found


def _read_if_changed(path: Path, before: _TokenState) -> _TokenState:
    try:
        status = path.stat()
        stamp = (path, status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)
        if stamp == before.stamp:
            return before
        token = read_token(path)
    except OSError as error:
        return _TokenState(complaint=f"{path}: {error.strerror}")
    except ValueError as error:
        return _TokenState(complaint=f"[api] token_file: allowed is {error}")
    mask(token)  # before a request with it can be logged
    return _TokenState(stamp, sha256(token.encode()).digest())


class TcpAuthMiddleware:
    """Raises WrongHost for a Host that is not this daemon's (another site's name may be made to point here: DNS rebinding),
    Forbidden for another site's page, Unauthorised without the token. `apps` are served below their paths, `app` elsewhere."""

    def __init__(
        self, app: ASGIApp, host: str, token_file: TokenFile, apps: Mapping[str, ASGIApp] | None = None
    ) -> None:
        self._app = app
        self._apps = dict(apps or {})
        self._token_file = token_file
        self._hosts = {host.lower(), "localhost", "127.0.0.1", "::1"}
        self._any_address = _is_wildcard(host)
        if self._any_address:
            self._hosts.add(socket.gethostname().lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        name = host_name(headers.get("host", ""))
        if not self._serves(name):
            raise WrongHost(f"Host {name[:100]!r} is not one this daemon answers to; use the configured address.")
        refuse_other_origins(scope, by_cookie=False)
        if not await self._token_file.accepts(headers):
            raise Unauthorised(
                "Send the token of the configured token_file as Authorization: Bearer TOKEN.",
                headers={"WWW-Authenticate": 'Bearer realm="hippod"'},
            )
        await self._app_for(scope["path"])(scope, receive, send)

    def _app_for(self, path: str) -> ASGIApp:
        for prefix, app in self._apps.items():
            if path == prefix or path.startswith(prefix.rstrip("/") + "/"):
                return app
        return self._app

    def _serves(self, name: str) -> bool:
        return name in self._hosts or (self._any_address and _is_address(name))


def refuse_other_origins(scope: Scope, *, by_cookie: bool) -> None:
    """Forbidden where another site's page sent the request, see `daemon.contract.http.same_origin`."""
    if not same_origin(scope["method"], Headers(scope=scope).items(), by_cookie=by_cookie):
        raise Forbidden(
            "Another site's page sent this; hippod answers no site but its own. Type or paste its address instead of "
            "following a link."
        )


def host_name(header: str) -> str:
    """The name in a Host header, without port and brackets, in lower case."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def _is_address(name: str) -> bool:
    """DNS cannot make an address point elsewhere, so any address of the machine is as good as the configured one."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_wildcard(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified
