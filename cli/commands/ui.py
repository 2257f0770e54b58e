"""ui: the page that shows the memory, for users with only the Unix socket.

It forwards the page's requests to the daemon's socket, for the one browser that opened the link. Every program on this machine
can reach the port, and every web page can make a browser send requests to it. Therefore the server only answers requests with
the right Host, from the page itself (`same_origin`), and with the session's cookie, and only forwards requests that the page
makes.
"""

import http.server
import os
import re
import secrets
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import closing
from hmac import compare_digest
from http import HTTPStatus
from http.client import HTTPException
from urllib.parse import parse_qs, urlsplit

import click

from cli.client.address import Address
from cli.client.http import READ_BYTES, SendingFailed, UnixConnection
from cli.errors import CommandError
from cli.options.global_options import Invocation, command
from cli.output import print_json, print_note
from daemon.contract.http.client import answer_timeout_s, parse_json
from daemon.contract.http.routes import Route
from daemon.contract.http.same_origin import cookie_value, same_origin

LOOPBACK = "127.0.0.1"
OPEN_PATH = "/open"
BODY_BYTES_MAX = 256 * 1024
"""Maximum size of a request's body, far larger than a question."""
BROWSER_TIMEOUT_S = 60.0
"""Seconds that the browser may take to send a request, or to read a piece of an answer."""

_GET_PATHS = {Route.STATUS, Route.EVENTS, Route.DOCUMENTS, Route.SCOPES, Route.METRICS, "/"}
_POST_PATHS = {Route.QUERY, Route.GRAPH, Route.RETRY}
_PAGE_FILE = re.compile(r"/page/(?:lib/|graph/)?[a-z][a-z.-]*")
_HEADERS_NOT_FORWARDED = {"connection", "date", "server", "transfer-encoding", "keep-alive"}

LINK_USED = (
    "This address works once, and only in the browser that opened it first.\nRun `hippoctl ui` again for a new one.\n"
)


class PageServer(http.server.ThreadingHTTPServer):
    """The constructor binds `port`, or a free port if it is 0. Raises OSError if the port is in use."""

    daemon_threads = True

    def __init__(self, address: Address, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.link = OneTimeLink()
        self.hosts = {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}
        self.cookie = f"hippod-ui-{self.server_port}"
        self.address = address

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}{OPEN_PATH}?token={self.link.token}"

    def serve_until_interrupted(self) -> None:
        """Serves in a thread until Ctrl-C.

        The main thread waits for the signal. Otherwise, a KeyboardInterrupt could get lost while Python handles another
        exception, and the command would continue.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            threading.Thread(target=self.serve_forever, name="serve", daemon=True).start()
            signal.sigwait({signal.SIGINT})
            self.shutdown()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores errors of a request, such as a disconnected browser."""


class _Handler(http.server.BaseHTTPRequestHandler):
    """Handles one request. Closes the connection after each answer, because a new loopback connection is cheap."""

    server: PageServer
    timeout = BROWSER_TIMEOUT_S
    server_version = "hippoctl"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        target = urlsplit(self.path)
        if headers.get("host", "").lower() not in self.server.hosts:
            self._say(HTTPStatus.MISDIRECTED_REQUEST, "This page is served under its own address only.\n")
        elif not same_origin(self.command, self.headers.items(), by_cookie=True):
            self._say(HTTPStatus.FORBIDDEN, "Another site asked for this. Copy the address that was printed.\n")
        elif self.command == "GET" and target.path == OPEN_PATH:
            self._open(parse_qs(target.query).get("token", [""])[0], headers)
        elif not self._admitted(headers):
            self._say(HTTPStatus.UNAUTHORIZED, LINK_USED)
        elif not self._is_forwarded(target.path):
            self._say(HTTPStatus.NOT_FOUND, "The page has no such file.\n")
        else:
            self._forward(headers)

    def _admitted(self, headers: Mapping[str, str]) -> bool:
        return self.server.link.admits(cookie_value(headers.get("cookie", ""), self.server.cookie))

    def _open(self, token: str, headers: Mapping[str, str]) -> None:
        cookie = self.server.link.redeem(token)
        if cookie is None and not self._admitted(headers):
            self._say(HTTPStatus.UNAUTHORIZED, LINK_USED)
            return
        self.send_response(HTTPStatus.SEE_OTHER)
        if cookie is not None:
            self.send_header("Set-Cookie", f"{self.server.cookie}={cookie}; Path=/; HttpOnly; SameSite=Strict")
        for name, value in {"Location": "/", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _is_forwarded(self, path: str) -> bool:
        if self.command == "POST":
            return path in _POST_PATHS
        return path in _GET_PATHS or _PAGE_FILE.fullmatch(path) is not None

    def _forward(self, headers: Mapping[str, str]) -> None:
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > BODY_BYTES_MAX or "transfer-encoding" in headers:
            self._say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"At most {BODY_BYTES_MAX} bytes, with their length.\n")
            return
        body = self.rfile.read(int(length)) if self.command == "POST" else None
        limit_s = answer_timeout_s(self.command, self.path, parse_json(body) if body else None)
        wanted = ("accept", "content-type", "if-none-match", "if-modified-since", "last-event-id")
        sent = {name: headers[name] for name in wanted if name in headers}
        began = False
        try:
            with closing(UnixConnection(self.server.address.connectable, limit_s)) as connection:
                connection.request(self.command, self.path, body, sent)
                answer = connection.getresponse()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in _HEADERS_NOT_FORWARDED:
                        self.send_header(name, value)
                self.end_headers()
                began = True
                while piece := answer.read1(READ_BYTES):
                    self.wfile.write(piece)
        except (OSError, HTTPException, SendingFailed):
            if not began:
                self._say(HTTPStatus.BAD_GATEWAY, f"No hippod answers on {self.server.address.path}.\n")

    def _say(self, status: HTTPStatus, text: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Length": str(len(text.encode())),
            "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: the page shows the events, and the address stays visible on the terminal."""


class OneTimeLink:
    """The link of one run of the command. The browser with the session's cookie may use the page until the command ends."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._session: str | None = None
        self._lock = threading.Lock()

    def redeem(self, token: str) -> str | None:
        """Returns the session's cookie the first time that the token is right; None otherwise."""
        with self._lock:
            if self._session is not None or not compare_digest(token.encode(), self.token.encode()):
                return None
            self._session = secrets.token_urlsafe(32)
            return self._session

    def admits(self, cookie: str) -> bool:
        session = self._session
        return session is not None and compare_digest(cookie.encode(), session.encode())


@command("ui")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port to listen on. Default: a free one."
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
def ui(invocation: Invocation, port: int, no_browser: bool) -> None:
    """The command serves the page on 127.0.0.1 until Ctrl-C. The printed address works once, in the browser that opens it
    first."""
    address = invocation.address()
    invocation.call("GET", Route.STATUS)  # reports a missing daemon here instead of in the browser
    try:
        server = PageServer(address, port)
    except OSError as error:
        raise CommandError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}.", hint="Choose another --port."
        ) from None
    with server:
        if invocation.json:
            print_json({"url": server.url, "socket": str(address.path)})
        else:
            click.echo(f"{server.url}\n\nThe address works once. Ctrl-C ends the page.")
        if not no_browser:
            _open_browser(server.url)
        server.serve_until_interrupted()
        if sys.stderr.isatty():
            sys.stderr.write("\n")


def _open_browser(url: str) -> None:
    """Opens the browser if there is a desktop; a text browser would take over the terminal."""
    import webbrowser

    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        print_note("No desktop was found: open the address yourself.")
    elif not webbrowser.open(url):
        print_note("No browser could be opened: open the address yourself.")
