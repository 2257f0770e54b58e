"""The application: every route of the contract, every error a problem."""

from importlib.metadata import PackageNotFoundError, version

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from daemon.api import asking, documents, extraction, graph, openapi, progress, respond, sessions, transfer
from daemon.api.checks import refusal
from daemon.api.context import Context
from daemon.api.edge import internal
from daemon.api.errors import ApiError, BadRequest, MethodNotAllowed, NotFound
from daemon.contract import Route as Paths
from daemon.page import routes as page


def build(context: Context) -> FastAPI:
    """The routes over `context.ports`. It is served through `edge.Edge`, which catches what is not expected."""
    app = FastAPI(
        title="hippod", openapi_url=None, redirect_slashes=False, generate_unique_id_function=lambda route: route.name
    )
    app.add_exception_handler(ApiError, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unexpected)
    for part in (asking, sessions, graph, documents, extraction, transfer, progress, page):
        part.add_routes(app, context)
    openapi.add_route(app, _version())
    return app


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return respond.problem(error)


async def _http(request: Request, error: Exception) -> Response:
    """What the framework itself refuses: a path or a method it has no route for."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 405:
        allowed = ", ".join(_methods(request))
        refused = MethodNotAllowed(f"{request.method} is not served on {path}; allowed: {allowed}.")
        return respond.problem(refused, {"Allow": allowed})
    if error.status_code == 404:
        return respond.problem(NotFound(f"There is no {path[:500]!r}; {Paths.OPENAPI} lists what there is."))
    return respond.problem(BadRequest(str(error.detail)))


def _methods(request: Request) -> list[str]:
    found: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return sorted(found)


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return respond.problem(refusal(error.errors()))


async def _unexpected(_request: Request, _error: Exception) -> Response:
    return respond.problem(internal())


def _version() -> str:
    try:
        return version("hippod")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0"
