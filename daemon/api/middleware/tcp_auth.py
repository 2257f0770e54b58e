"""Checks a request on TCP before the app: the host name, the origin, and the token.

The Unix socket needs none of these checks: its file mode restricts who may connect, and the kernel identifies the peer.

`ApiServer(..., tcp_apps={"/path": app})` serves an app behind the same checks, on TCP only. The app gets the requests at and
below its path. The deadline for bodies applies to the app too (`daemon.api.request_parsing.BodyDeadline`), but the app itself
must limit the length of bodies.
"""

import ipaddress
import socket
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.contract.http.same_origin import same_origin
from daemon.errors import Forbidden, WrongHost


class TcpAuthMiddleware:
    """Refuses requests with a wrong Host, from another site's page, or without a client's token.

    Raises WrongHost if Host is not this daemon's (DNS rebinding points another site's name here), Forbidden for another
    site's page, Unauthorised without a valid token. `apps` are served at and below their paths, `app` elsewhere.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        identified: Callable[[ASGIApp], ASGIApp],
        apps: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        """`identified` wraps an app in `ClientMiddleware`."""
        self._app = app
        self._apps = dict(apps or {})
        self._identified = identified(self._serve)
        self._hosts = {host.lower(), "localhost", "127.0.0.1", "::1"}
        self._any_address = _is_wildcard(host)
        if self._any_address:
            self._hosts.add(socket.gethostname().lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        name = host_name(headers.get("host", ""))
        if name not in self._hosts and not (self._any_address and _is_address(name)):
            raise WrongHost(f"hippod does not serve the host name {name[:100]!r}; use the configured address.")
        refuse_other_origins(scope, by_cookie=False)
        await self._identified(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, app = scope["path"], self._app
        for prefix, other in self._apps.items():
            if path == prefix or path.startswith(prefix.rstrip("/") + "/"):
                app = other
                break
        await app(scope, receive, send)


def refuse_other_origins(scope: Scope, *, by_cookie: bool) -> None:
    """Raises Forbidden if another site's page sent the request, see `daemon.contract.http.same_origin`."""
    if not same_origin(scope["method"], Headers(scope=scope).items(), by_cookie=by_cookie):
        raise Forbidden(
            "Another site's page sent this request; hippod answers only its own page. Type or paste its address instead of "
            "following a link."
        )


def host_name(header: str) -> str:
    """Returns the lower-case name in a Host header, without port and brackets."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def _is_address(name: str) -> bool:
    """Returns whether `name` is an IP address. Any address is accepted, because DNS cannot redirect it."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_wildcard(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified
