"""The page's files, and the routes that only the page needs. These routes are not part of the OpenAPI document."""

import secrets
from functools import cache
from html import escape
from importlib.metadata import distribution
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.staticfiles import StaticFiles

from daemon.api.access.rights import client_of
from daemon.api.endpoints import Endpoints, Routes
from daemon.api.ports import MemoryPorts
from daemon.contract.choices import MODES
from daemon.contract.http.routes import Need, served
from daemon.contract.status import Overview
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


class PageRoutes(Routes):
    @served("GET", HOME_PATH, Need.CLIENT, in_schema=False)
    async def home(self) -> Response:
        """Show the page."""
        nonce = secrets.token_urlsafe(18)
        return HTMLResponse(_page_template().replace("{nonce}", nonce), headers=page_headers(nonce))

    @served("GET", SESSION_PATH, Need.CLIENT, in_schema=False)
    async def session(self, request: Request) -> Response:
        """Report whether the request belongs to a login, which can be ended, and the client's rights.

        The login form's middleware requests it to check a token.
        """
        about = {"logout": SESSION_HEADER in request.headers, "rights": sorted(client_of(request.scope).rights)}
        return JSONResponse(about, headers=dict(SECURITY_HEADERS))

    @served("GET", "/page/lib/{name}", Need.CLIENT, in_schema=False)
    async def library(self, request: Request) -> Response:
        """Send a file of the plotting library."""
        return await _file(request, _library_files(), LIBRARY_FILES)

    @served("GET", OVERVIEW_PATH, Need.READ, in_schema=False)
    async def overview(self, ports: MemoryPorts) -> Overview:
        """Report the memory's growth and its newest documents."""
        return await ports.documents.overview()

    @served("GET", "/page/{name:path}", Need.CLIENT, in_schema=False)
    async def static(self, request: Request) -> Response:
        """Send a file of the page."""
        return await _file(request, _page_files(), PAGE_FILES)


def add_routes(endpoints: Endpoints) -> None:
    endpoints.add_routes(PageRoutes(endpoints.context))


async def _file(request: Request, folder: StaticFiles, names: frozenset[str]) -> Response:
    """Returns the requested file if its name is in `names`; status 304 if the browser has the present version."""
    name = request.path_params["name"]
    if name not in names:
        raise NotFound(f"The page has no file {name[:100]!r}.")
    answer = await folder.get_response(name, request.scope)
    answer.headers.update(SECURITY_HEADERS)
    if name == "graph/layout.js":  # a worker has its own policy, and needs no access
        answer.headers["Content-Security-Policy"] = "default-src 'none'"
    return answer


@cache
def _page_files() -> StaticFiles:
    return StaticFiles(directory=STATIC_FOLDER)


@cache
def _page_template() -> str:
    options = "".join(f'<option title="{escape(mode.summary)}">{escape(mode.name)}</option>' for mode in MODES.values())
    return (STATIC_FOLDER / "index.html").read_text("utf-8").replace("{modes}", options)


@cache
def _library_files() -> StaticFiles:
    return StaticFiles(directory=str(distribution("bokeh").locate_file("bokeh/server/static/js")))
