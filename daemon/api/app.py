"""The FastAPI application: adds every route of the contract, and answers every error with a problem document."""

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from daemon.api import responses
from daemon.api.access.rights import guard
from daemon.api.context import ApiContext
from daemon.api.endpoints import Endpoints, Routes
from daemon.api.middleware.request_boundary import internal_error
from daemon.api.openapi import document
from daemon.api.request_parsing import validation_problem
from daemon.api.routes.chat import ChatRoutes
from daemon.api.routes.documents import DocumentRoutes
from daemon.api.routes.questions import QuestionRoutes
from daemon.api.routes.status import StatusRoutes
from daemon.api.routes.transfer import TransferRoutes
from daemon.contract.http.routes import JSON, Need, served
from daemon.contract.http.routes import Route as Paths
from daemon.errors import BadRequest, MethodNotAllowed, NotFound, RequestError

AddRoutes = Callable[[Endpoints], None]
DESCRIPTION: dict[int | str, Any] = {
    200: {"description": "This document.", "content": {JSON: {"schema": {"type": "object"}}}}
}


def build(context: ApiContext, more_routes: Sequence[AddRoutes] = ()) -> FastAPI:
    """Returns the application with the routes over the ports of `context`, and the routes that `more_routes` add.

    `RequestBoundary`, which wraps the application, turns unexpected errors into problems. Raises TypeError if a route does
    not declare what it requires (`daemon.api.access.rights`).
    """
    app = FastAPI(
        title="hippod", openapi_url=None, redirect_slashes=False, generate_unique_id_function=lambda route: route.name
    )
    app.add_exception_handler(RequestError, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unexpected)
    endpoints = Endpoints(app, context)
    for routes in (QuestionRoutes, ChatRoutes, DocumentRoutes, TransferRoutes, StatusRoutes, DescriptionRoutes):
        endpoints.add_routes(routes(context))
    for add_routes in more_routes:
        add_routes(endpoints)
    for route in app.routes:
        guard(route)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return responses.problem_response(error, path=request.url.path)


async def _http(request: Request, error: Exception) -> Response:
    """Answers the framework's own refusals: an unknown path, or a method that the path does not serve."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 405:
        allowed = ", ".join(_methods(request))
        refused = MethodNotAllowed(f"{request.method} is not served on {path}; allowed: {allowed}.")
        return responses.problem_response(refused, {"Allow": allowed})
    if error.status_code == 404:
        return responses.problem_response(
            NotFound(f"The path {path[:500]!r} does not exist; {Paths.OPENAPI} lists the paths.")
        )
    return responses.problem_response(BadRequest(str(error.detail)))


def _methods(request: Request) -> list[str]:
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return sorted(found)


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return responses.problem_response(validation_problem(error.errors()))


async def _unexpected(_request: Request, _error: Exception) -> Response:
    return responses.problem_response(internal_error())


class DescriptionRoutes(Routes):
    @served("GET", Paths.OPENAPI, Need.CLIENT, described=DESCRIPTION)
    async def openapi(self, request: Request) -> Response:
        """Describe the requests and responses of all routes."""
        return Response(await asyncio.to_thread(_description, request.app), media_type=JSON)


@lru_cache(maxsize=1)
def _description(app: FastAPI) -> bytes:
    return to_json(document(app, version("hippod")))
