"""What a request on TCP must pass before the app: the right host name, no other site's page, and the token.

The Unix socket needs none of it: its file mode says who may connect, and the kernel who does.

An app that is to be served on TCP alone goes behind the same checks: `ApiServer(..., tcp_apps={"/path": app})`. It gets the
requests below its path, and does not exist on the Unix socket. The deadline for a request's body holds for it, too
(`daemon.api.request_body.BodyDeadline`); it must limit the body's length by itself.
"""

import ipaddress
import socket
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.contract.http.same_origin import same_origin
from daemon.errors import Forbidden, WrongHost


class TcpAuthMiddleware:
    """Raises WrongHost for a Host that is not this daemon's (another site's name may be made to point here: DNS rebinding),
    Forbidden for another site's page, Unauthorised without a client's token. `apps` are served below their paths,
    `app` elsewhere."""

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        identified: Callable[[ASGIApp], ASGIApp],
        apps: Mapping[str, ASGIApp] | None = None,
    ) -> None:
        """`identified` puts an app behind `ClientMiddleware`."""
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
        if not self._serves(name):
            raise WrongHost(f"Host {name[:100]!r} is not one this daemon answers to; use the configured address.")
        refuse_other_origins(scope, by_cookie=False)
        await self._identified(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
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
            "Another site's page sent this request; hippod answers only its own page. Type or paste its address instead of "
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
