"""The right that each route needs: declared at the route's function and checked before the function is called."""

from starlette.routing import BaseRoute, Route, request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.api.access.client import Client, Right
from daemon.api.middleware.disconnect import cancel_on_disconnect
from daemon.contract.http.routes import Need
from daemon.errors import Forbidden


def need_of(route: BaseRoute) -> Need:
    """Returns what a route requires. Raises TypeError if the route does not declare it: such a route must not be served."""
    need = getattr(getattr(route, "endpoint", None), "need", None)
    if not isinstance(route, Route) or not isinstance(need, Need):
        raise TypeError(
            f"the route {getattr(route, 'path', route)!r} does not declare what it needs: write @served(...)"
        )
    return need


def guard(route: BaseRoute) -> None:
    """Makes `route` refuse clients without the required right, and end when its client disconnects. Raises like `need_of`."""
    need = need_of(route)
    assert isinstance(route, Route)
    # FastAPI's own handler would look for parameters, but the only parameter of these routes is the request.
    route.app = _Guard(request_response(route.endpoint), need)


def client_of(scope: Scope) -> Client:
    """Returns the client that `daemon.api.access.clients` identified. Raises Forbidden if the requester is not a client."""
    found = scope.get("state", {}).get("client")
    if not isinstance(found, Client):
        raise Forbidden(
            "This user or token is not a client of this memory. The configuration names the clients in [[client]], by user, "
            "group or token."
        )
    return found


class _Guard:
    def __init__(self, app: ASGIApp, need: Need) -> None:
        self._app = app
        self._need = need

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._need is not Need.NOTHING:
            client = client_of(scope)
            if self._need is not Need.CLIENT and Right(self._need.value) not in client.rights:
                raise Forbidden(
                    f'The client "{client.name}" lacks the right {self._need.value}; '
                    "add it to `rights` in its [[client]]."
                )
        await cancel_on_disconnect(self._app, scope, receive, send)
