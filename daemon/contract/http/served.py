"""Declares a service's method as a route: its annotations and docstring describe the request, the response and the summary."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

from daemon.contract.http.routes import Route

Method = TypeVar("Method", bound=Callable[..., Any])


class Need(StrEnum):
    """What a route requires of the requester: nothing, to be any client, or a particular right."""

    NOTHING = "nothing"
    CLIENT = "client"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


def served(method: str, path: Route, need: Need, *statuses: int, **options: bool) -> Callable[[Method], Method]:
    """Declares the decorated method as a route. It takes a request of the contract, or nothing.

    The arguments are those of `daemon.api.endpoints.Endpoints.add`.
    """

    def declared(function: Method) -> Method:
        function.__dict__["served"] = (method, path, need, *statuses), options
        return function

    return declared
