"""Adds the routes of the contract. A route is a function; the types of its parameters say what it is given.

- A model of the contract: the parsed body, or of a GET the parsed query string.
- `MemoryPorts`: the memory as the client may see it. `Request`: the HTTP request.
- `BodyReservation`: the reserved memory for a body that the function reads itself.

The returned model becomes the response. These types also describe the route in the OpenAPI document.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar, get_args, get_type_hints

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.access.rights import Need, needs
from daemon.api.context import ApiContext
from daemon.api.openapi import json_body, problems, query_parameters
from daemon.api.ports import MemoryPorts
from daemon.api.request_body import BodyReservation
from daemon.api.validation import read_model, read_query_string

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[BaseModel | Response]])

BODY_PROBLEMS = (400, 408, 413, 415, 422)
"""Statuses of the problems of any route that reads a body."""


class Endpoints:
    """Adds routes to `app` that use `context`."""

    def __init__(self, app: FastAPI, context: ApiContext) -> None:
        self.app = app
        self.context = context

    def add(
        self,
        method: str,
        path: str,
        need: Need,
        *statuses: int,
        body: type[BaseModel] | None = None,
        body_lines: bool = False,
        body_required: bool = True,
        releases_body: bool = False,
        described: Mapping[int | str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Callable[[Handler], Handler]:
        """Adds the decorated function as a route; its docstring is the summary.

        `statuses` are those of its problems, in addition to the usual ones. `body` is the model of a body that the function
        reads itself, perhaps as JSON lines (`body_lines`). `releases_body`: the reservation ends when the body is parsed,
        because the work takes long. `described` and `extra` are further responses and keys of the route's description.
        """

        def added(handler: Handler) -> Handler:
            kinds = get_type_hints(handler, include_extras=True)
            returned = kinds.pop("return")
            model = next((kind for kind in kinds.values() if issubclass(kind, BaseModel)), None)
            reads_body = BodyReservation in kinds.values() or (model is not None and method != "GET")

            async def endpoint(request: Request) -> Response:
                with ExitStack() as held:
                    given: dict[type, Any] = {Request: request}
                    if reads_body:
                        reserved = given[BodyReservation] = held.enter_context(self.context.body_reservation(request))
                    if model is not None and reads_body:
                        given[model] = await read_model(request, model, reserved, self.context.limits)
                    elif model is not None:
                        given[model] = read_query_string(request, model)
                    if releases_body:
                        held.close()
                    if MemoryPorts in kinds.values():
                        given[MemoryPorts] = await self.context.memory(request)
                    answer = await handler(**{name: given[kind] for name, kind in kinds.items()})
                    return answer if isinstance(answer, Response) else responses.json_response(answer)

            endpoint.__name__ = handler.__name__
            description: dict[str, Any] = {}
            if sent := body or (model if reads_body else None):
                description |= json_body(endpoint, sent, lines=body_lines, required=body_required)
            elif model is not None:
                description |= query_parameters(model)
            usual = BODY_PROBLEMS if reads_body else (422,) if model is not None else ()
            choices = get_args(returned) if Response in get_args(returned) else (returned,)
            answers = [kind for kind in choices if kind is not Response]
            self.app.add_api_route(
                path,
                needs(need)(endpoint),
                methods=[method],
                summary=(handler.__doc__ or "").rstrip("."),
                responses=problems(*usual, *statuses) | dict(described or {}),
                openapi_extra={**description, **(extra or {})} or None,
                **({"response_model": answers[0]} if answers else {"response_class": Response}),
            )
            return handler

        return added
