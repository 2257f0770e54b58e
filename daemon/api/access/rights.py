"""What each route needs, declared where the route is, and checked before the route is called."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from daemon.api.access.client import Client, Right
from daemon.api.middleware.disconnect import cancel_on_disconnect
from daemon.errors import Forbidden

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Need(StrEnum):
    """What a route needs of whoever asks: nothing, to be a client at all, or one of the rights."""

    NOTHING = "nothing"
    CLIENT = "client"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


def needs(need: Need) -> Callable[[Endpoint], Endpoint]:
    """Declares what a route needs. Stands right above the function that answers it."""

    def declared(endpoint: Endpoint) -> Endpoint:
        endpoint.__dict__["need"] = need
        return endpoint

    return declared


def need_of(route: BaseRoute) -> Need:
    """TypeError where the route declares none: it must not be served."""
    need = getattr(getattr(route, "endpoint", None), "need", None)
    if not isinstance(route, Route) or not isinstance(need, Need):
        raise TypeError(
            f"the route {getattr(route, 'path', route)!r} does not declare what it needs: write @needs(...)"
        )
    return need


def guard(route: BaseRoute) -> None:
    """Has `route` refuse whoever lacks what it needs, and end when its client disconnects. TypeError as `need_of`."""
    need = need_of(route)
    assert isinstance(route, Route)
    route.app = _Guard(route.app, need)


def client_of(scope: Scope) -> Client:
    """The client of a request, as `daemon.api.access.clients` has found it. Forbidden where it is none."""
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
                    f'The client "{client.name}" has not the right to {self._need.value}: the configuration gives it, with '
                    "rights in its [[client]]."
                )
        await cancel_on_disconnect(self._app, scope, receive, send)
