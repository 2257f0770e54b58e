"""What stands before the app on TCP: the right name, then the right token. The Unix socket has its file mode instead."""

import ipaddress
import socket
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.api.errors import Unauthorised, WrongHost

log = structlog.get_logger(__name__)


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
                log.error("nobody is let in over TCP", reason=str(error))


class Guard:
    """WrongHost for a Host that is not this daemon's (a web page that rebinds a name to it), Unauthorised without the token."""

    def __init__(self, app: ASGIApp, host: str, token: TokenFile) -> None:
        self._app = app
        self._hosts = {host.lower(), "localhost", "127.0.0.1", "::1"}
        self._anywhere = _is_wildcard(host)
        if self._anywhere:
            self._hosts.add(socket.gethostname().lower())
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        name = host_name(headers.get("host", ""))
        if not self._serves(name):
            raise WrongHost(f"Host {name[:100]!r} is not one this daemon answers to; use the configured address.")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._token.accepts(token.strip().encode("latin-1")):
            raise Unauthorised(
                "Send the token of the configured token_file as Authorization: Bearer TOKEN.",
                headers={"WWW-Authenticate": 'Bearer realm="hippod"'},
            )
        await self._app(scope, receive, send)

    def _serves(self, name: str) -> bool:
        return name in self._hosts or (self._anywhere and _is_address(name))


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
