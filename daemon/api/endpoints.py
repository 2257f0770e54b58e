"""Adds the routes of the contract. `daemon.contract.http.routes.served` declares a method as a route. The types of the method's
parameters select its arguments:

- A model of the contract: the parsed body; for GET, the parsed query string.
- `MemoryPorts`: the memory as the client may see it. `Request`: the HTTP request.
- `BodyReservation`: the reserved memory for a body that the method reads itself.

The returned model becomes the response. These types also describe the route in the OpenAPI document.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from typing import Any, get_args, get_type_hints

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from daemon.api import responses
from daemon.api.context import ApiContext
from daemon.api.openapi import json_body, problems, query_parameters
from daemon.api.ports import MemoryPorts
from daemon.api.request_parsing import BodyReservation, read_model, read_query_string
from daemon.contract.base import Request as RequestModel
from daemon.contract.http.routes import Need

Handler = Callable[..., Awaitable[BaseModel | Response]]

BODY_PROBLEMS = (400, 408, 413, 415, 422)
"""Problem statuses of all routes that read a body."""


class Routes:
    """A group of routes: methods that `served` declares."""

    def __init__(self, context: ApiContext) -> None:
        self.context = context


class Endpoints:
    """Adds routes to `app` that use `context`."""

    def __init__(self, app: FastAPI, context: ApiContext) -> None:
        self.app = app
        self.context = context

    def add_routes(self, routes: Routes) -> None:
        """Adds the methods of `routes` that `served` declares."""
        for name, method in vars(type(routes)).items():
            if hasattr(method, "served"):
                arguments, options = method.served
                self._add(getattr(routes, name), *arguments, **options)

    def add_service(self, port: str, service: type) -> None:
        """Adds the methods of `service` that `served` declares, as calls on the port named `port`."""
        for name, method in vars(service).items():
            if hasattr(method, "served"):
                arguments, options = method.served
                self._add(_call_of(port, name, method), *arguments, **options)

    def _add(
        self,
        handler: Handler,
        method: str,
        path: str,
        need: Need,
        *statuses: int,
        body: type[BaseModel] | None = None,
        body_lines: bool = False,
        body_required: bool = True,
        releases_body: bool = False,
        audited: bool | None = None,
        described: Mapping[int | str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        in_schema: bool = True,
    ) -> None:
        """Adds `handler` as a route; its docstring is the summary.

        `statuses`: HTTP statuses of the route's problems, in addition to the usual statuses. `body`: the model of a body that
        the handler reads itself. `body_lines`: the body may also be JSON lines. `releases_body`: the reservation ends as soon
        as the body is parsed, because the work takes long. `audited`: its requests are logged at level info; by default, this
        holds for routes that change something. `described`, `extra`: further responses and further keys of the route's
        description. `in_schema`: whether the OpenAPI document describes the route.
        """
        kinds = get_type_hints(handler, include_extras=True)
        returned = kinds.pop("return")
        model = next((kind for kind in kinds.values() if issubclass(kind, BaseModel)), None)
        reads_body = BodyReservation in kinds.values() or (model is not None and method != "GET")

        async def endpoint(request: Request) -> Response:
            with ExitStack() as stack:
                arguments: dict[type, Any] = {Request: request}
                if reads_body:
                    reserved = arguments[BodyReservation] = stack.enter_context(self.context.body_reservation(request))
                if model is not None and reads_body:
                    arguments[model] = await read_model(request, model, reserved, self.context.limits)
                elif model is not None:
                    arguments[model] = read_query_string(request, model)
                if releases_body:
                    stack.close()
                if MemoryPorts in kinds.values():
                    arguments[MemoryPorts] = await self.context.memory(request)
                answer = await handler(**{name: arguments[kind] for name, kind in kinds.items()})
                return answer if isinstance(answer, Response) else responses.json_response(answer)

        endpoint.__name__ = handler.__name__
        changes = need in (Need.WRITE, Need.ADMIN) and method != "GET"
        endpoint.__dict__ |= {"need": need, "audited": changes if audited is None else audited}
        description: dict[str, Any] = {}
        if body_model := body or (model if reads_body else None):
            description |= json_body(endpoint, body_model, lines=body_lines, required=body_required)
        elif model is not None:
            description |= query_parameters(model)
        usual = BODY_PROBLEMS if reads_body else (422,) if model is not None else ()
        choices = get_args(returned) if Response in get_args(returned) else (returned,)
        answers = [kind for kind in choices if kind is not Response]
        self.app.add_api_route(
            path,
            endpoint,
            # Browsers and proxies check the page's files by HEAD; the API's routes are GET alone, as described.
            methods=[method] if in_schema or method != "GET" else [method, "HEAD"],
            include_in_schema=in_schema,
            summary=(handler.__doc__ or "").rstrip("."),
            responses=problems(*usual, *statuses) | dict(described or {}),
            openapi_extra={**description, **(extra or {})} or None,
            **({"response_model": answers[0]} if answers else {"response_class": Response}),
        )


def _call_of(port: str, name: str, method: Callable[..., Any]) -> Callable[..., Awaitable[BaseModel]]:
    """Returns a handler that calls the method `name` of the port, with the parsed request if the method has a parameter for
    it."""
    kinds = get_type_hints(method)
    model = next((kind for kind in kinds.values() if isinstance(kind, type) and issubclass(kind, RequestModel)), None)

    async def call(ports: MemoryPorts, **request: BaseModel) -> BaseModel:
        answer: BaseModel = await getattr(getattr(ports, port), name)(*request.values())
        return answer

    request = {} if model is None else {"request": model}
    call.__annotations__ = {"ports": MemoryPorts, **request, "return": kinds["return"]}
    call.__name__, call.__doc__ = name, (method.__doc__ or "").partition("\n")[0]
    return call
