"""Hands the page's requests on to the daemon's socket, for one browser: the one that opened the link.

Any program of this machine can reach the port, and any web page can make a browser send something to it. So nothing is
answered but to the right Host, from the page itself (`same_origin`), with the session's cookie; and nothing is handed on
but what the page asks for.
"""

import http.server
import re
import signal
import threading
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

import httpx

from cli.address import Address
from cli.ui.ticket import Ticket
from daemon.contract import Route
from daemon.contract.browser import cookie_value, same_origin

LOOPBACK = "127.0.0.1"
OPEN = "/open"
BODY_BYTES = 256 * 1024
"""A question is far shorter."""
CLIENT_S = 60.0
"""How long the browser may take to send a request, or to read a piece of an answer."""
ANSWER_S = 120.0
CONNECT_S = 5.0

_GET = {Route.STATUS, Route.EVENTS, Route.DOCUMENTS, Route.METRICS, "/"}
_POST = {Route.QUERY, Route.GRAPH, Route.RETRY}
_FILE = re.compile(r"/page/(?:lib/)?[a-z][a-z.-]*")
_KEPT_BACK = {"connection", "date", "server", "transfer-encoding", "keep-alive"}

USED = (
    "This address works once, and only in the browser that opened it first.\nRun `hippoctl ui` again for a new one.\n"
)


class PageServer(http.server.ThreadingHTTPServer):
    """Listens at once, on `port` or a free one. OSError where the port is taken."""

    daemon_threads = True

    def __init__(self, address: Address, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.ticket = Ticket()
        self.hosts = {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}
        self.cookie = f"hippod-ui-{self.server_port}"
        self.socket_name = str(address.path)
        self.daemon = httpx.Client(
            transport=httpx.HTTPTransport(uds=address.connectable, limits=httpx.Limits(max_connections=64)),
            base_url="http://localhost",
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            trust_env=False,
        )

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}{OPEN}?token={self.ticket.token}"

    def serve_until_interrupted(self) -> None:
        """Serves in a thread of its own until Ctrl-C. That is waited for: an exception that Python raises wherever the main
        thread happens to be is lost where it happens to be tidying up after another, and the command would go on."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            threading.Thread(target=self.serve_forever, name="serve", daemon=True).start()
            signal.sigwait({signal.SIGINT})
            self.shutdown()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def server_close(self) -> None:
        super().server_close()
        self.daemon.close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away is no news."""


class _Handler(http.server.BaseHTTPRequestHandler):
    """One request. An answer ends with its connection: on the loopback interface a new one costs nothing."""

    server: PageServer
    timeout = CLIENT_S
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
        elif not same_origin(self.command, headers):
            self._say(HTTPStatus.FORBIDDEN, "Another site asked for this. Copy the address that was printed.\n")
        elif self.command == "GET" and target.path == OPEN:
            self._open(parse_qs(target.query).get("token", [""])[0], headers)
        elif not self._admitted(headers):
            self._say(HTTPStatus.UNAUTHORIZED, USED)
        elif not self._handed_on(target.path):
            self._say(HTTPStatus.NOT_FOUND, "The page has nothing there.\n")
        else:
            self._hand_on(headers)

    def _admitted(self, headers: Mapping[str, str]) -> bool:
        return self.server.ticket.admits(cookie_value(headers.get("cookie", ""), self.server.cookie))

    def _open(self, token: str, headers: Mapping[str, str]) -> None:
        cookie = self.server.ticket.redeem(token)
        if cookie is None and not self._admitted(headers):
            self._say(HTTPStatus.UNAUTHORIZED, USED)
            return
        self.send_response(HTTPStatus.SEE_OTHER)
        if cookie is not None:
            self.send_header("Set-Cookie", f"{self.server.cookie}={cookie}; Path=/; HttpOnly; SameSite=Strict")
        for name, value in {"Location": "/", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}.items():
            self.send_header(name, value)
        self.end_headers()

    def _handed_on(self, path: str) -> bool:
        if self.command == "POST":
            return path in _POST
        return path in _GET or _FILE.fullmatch(path) is not None

    def _hand_on(self, headers: Mapping[str, str]) -> None:
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > BODY_BYTES or "transfer-encoding" in headers:
            self._say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"At most {BODY_BYTES} bytes, with their length.\n")
            return
        body = self.rfile.read(int(length)) if self.command == "POST" else None
        wanted = ("accept", "content-type", "if-none-match", "if-modified-since", "last-event-id")
        sent = {name: headers[name] for name in wanted if name in headers}
        began = False
        try:
            with self.server.daemon.stream(self.command, self.path, content=body, headers=sent) as answer:
                self.send_response(answer.status_code)
                for name, value in answer.headers.items():
                    if name not in _KEPT_BACK:
                        self.send_header(name, value)
                self.end_headers()
                began = True
                for piece in answer.iter_raw():
                    self.wfile.write(piece)
        except httpx.HTTPError:
            if not began:
                self._say(HTTPStatus.BAD_GATEWAY, f"No hippod answers on {self.server.socket_name}.\n")

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
        """The page shows what happens; the terminal keeps the address in view."""
