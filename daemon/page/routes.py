"""The page's files, and the routes that only the page needs. These routes are not part of the OpenAPI document."""

import secrets
from functools import cache
from html import escape
from importlib.metadata import distribution
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

from daemon.api import responses
from daemon.api.access.rights import client_of, needs
from daemon.api.endpoints import Endpoints
from daemon.contract.choices import MODES
from daemon.contract.http.routes import Need
from daemon.errors import NotFound
from daemon.page.login import HOME_PATH, SESSION_HEADER, SESSION_PATH
from daemon.page.security_headers import SECURITY_HEADERS, page_headers

OVERVIEW_PATH = "/page/overview"
STATIC_FOLDER = Path(__file__).with_name("static")
PAGE_FILES = frozenset(
    path.relative_to(STATIC_FOLDER).as_posix()
    for path in STATIC_FOLDER.rglob("*")
    if path.suffix in (".css", ".js", ".svg")
)
LIBRARY_FILES = frozenset({"bokeh.min.js", "bokeh-api.min.js"})
"""Files of the plotting library, served from its package without importing it."""


def add_routes(endpoints: Endpoints) -> None:
    app, context = endpoints.app, endpoints.context
    ours = StaticFiles(directory=STATIC_FOLDER)

    @needs(Need.CLIENT)
    async def home(_request: Request) -> Response:
        nonce = secrets.token_urlsafe(18)
        return HTMLResponse(_page_template().replace("{nonce}", nonce), headers=page_headers(nonce))

    @needs(Need.CLIENT)
    async def static(request: Request) -> Response:
        return await _file(request, ours, PAGE_FILES)

    @needs(Need.CLIENT)
    async def library(request: Request) -> Response:
        return await _file(request, _library_files(), LIBRARY_FILES)

    @needs(Need.CLIENT)
    async def session(request: Request) -> Response:
        """Returns whether the request belongs to a login, which can be ended, and the client's rights.

        The login form's middleware requests it to check a token.
        """
        about = {"logout": SESSION_HEADER in request.headers, "rights": sorted(client_of(request.scope).rights)}
        return JSONResponse(about, headers=dict(SECURITY_HEADERS))

    @needs(Need.READ)
    async def overview(request: Request) -> Response:
        return responses.json_response(await (await context.memory(request)).documents.overview())

    app.add_route(HOME_PATH, home, ["GET"], include_in_schema=False)
    app.add_route(SESSION_PATH, session, ["GET"], include_in_schema=False)
    app.add_route("/page/lib/{name}", library, ["GET"], include_in_schema=False)

    app.add_route(OVERVIEW_PATH, overview, ["GET"], include_in_schema=False)
    app.add_route("/page/{name:path}", static, ["GET"], include_in_schema=False)


async def _file(request: Request, folder: StaticFiles, names: frozenset[str]) -> Response:
    """Returns a file if it is in `names`; 304 if the browser has the present version."""
    name = request.path_params["name"]
    if name not in names:
        raise NotFound(f"The page has no file {name[:100]!r}.")
    answer = await folder.get_response(name, request.scope)
    answer.headers.update(SECURITY_HEADERS)
    if name == "graph/layout.js":  # a worker has its own policy, and needs no access
        answer.headers["Content-Security-Policy"] = "default-src 'none'"
    return answer


@cache
def _page_template() -> str:
    options = "".join(f'<option title="{escape(mode.summary)}">{escape(mode.name)}</option>' for mode in MODES.values())
    return (STATIC_FOLDER / "index.html").read_text("utf-8").replace("{modes}", options)


@cache
def _library_files() -> StaticFiles:
    return StaticFiles(directory=str(distribution("bokeh").locate_file("bokeh/server/static/js")))
