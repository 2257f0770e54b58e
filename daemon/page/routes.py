"""The page's files, and what the page is told that the API's routes do not say. None of it is in the OpenAPI document."""

import secrets
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

from daemon.api import respond
from daemon.api.context import Context
from daemon.api.errors import NotFound
from daemon.page.door import BY_SESSION, HOME, SESSION
from daemon.page.policy import SECURITY, page_headers

OVERVIEW = "/page/overview"
STATIC = Path(__file__).with_name("static")
OURS = frozenset(path.name for path in STATIC.iterdir() if path.suffix in (".css", ".js", ".svg"))
LIBRARY = frozenset({"bokeh.min.js", "bokeh-api.min.js"})
"""What is served of the drawing library; found in its package without importing it."""


def add_routes(app: FastAPI, context: Context) -> None:
    ours = StaticFiles(directory=STATIC)

    async def home(_request: Request) -> Response:
        nonce = secrets.token_urlsafe(18)
        return HTMLResponse(_page().replace("{nonce}", nonce), headers=page_headers(nonce))

    async def static(request: Request) -> Response:
        return await _file(request, ours, OURS)

    async def library(request: Request) -> Response:
        return await _file(request, _library(), LIBRARY)

    async def session(_request: Request) -> Response:
        """Whoever gets here is let in; the door asks for it when somebody logs in."""
        return Response(status_code=204, headers=dict(SECURITY))

    async def way_in(request: Request) -> Response:
        """What the page has to offer of the door: a way out, where there was a login."""
        return JSONResponse({"logout": BY_SESSION in request.headers}, headers=dict(SECURITY))

    app.add_route("/page/door", way_in, ["GET"], include_in_schema=False)
    app.add_route(HOME, home, ["GET"], include_in_schema=False)
    app.add_route(SESSION, session, ["GET"], include_in_schema=False)
    app.add_route("/page/lib/{name}", library, ["GET"], include_in_schema=False)
    overviews = context.ports.overviews
    if overviews is not None:

        async def overview(_request: Request) -> Response:
            return respond.json(await overviews.overview())

        app.add_route(OVERVIEW, overview, ["GET"], include_in_schema=False)
    app.add_route("/page/{name}", static, ["GET"], include_in_schema=False)


async def _file(request: Request, folder: StaticFiles, names: frozenset[str]) -> Response:
    """A file of a fixed list; 304 where the browser has it."""
    name = request.path_params["name"]
    if name not in names:
        raise NotFound(f"The page has no file {name[:100]!r}.")
    answer = await folder.get_response(name, request.scope)
    answer.headers.update(SECURITY)
    if name == "layout.js":  # a worker has a policy of its own: it needs nothing
        answer.headers["Content-Security-Policy"] = "default-src 'none'"
    return answer


@cache
def _page() -> str:
    return (STATIC / "index.html").read_text("utf-8")


@cache
def _library() -> StaticFiles:
    return StaticFiles(directory=str(distribution("bokeh").locate_file("bokeh/server/static/js")))
