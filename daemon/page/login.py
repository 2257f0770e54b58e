"""The page's login on TCP: a form exchanges the token for a cookie, and the middleware exchanges the cookie for the token.

`daemon.api.middleware.tcp_auth` runs after the middleware and decides on each request. `tcp_auth` sees a request with a cookie
as a request with the token of that login, and checks the rest of the request as usual. Logins are kept in memory only, so they
end with the daemon. The form needs no other file, so only the form is served without a token.
"""

import secrets
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.api.access.client import identity_of
from daemon.api.middleware.peers import mark_unauthenticated, request_peer
from daemon.api.middleware.tcp_auth import refuse_other_origins
from daemon.contract.http.same_origin import cookie_value
from daemon.errors import TooLarge, Unauthorised
from daemon.page.security_headers import SECURITY_HEADERS, login_headers

SESSION_LIFETIME_S = 12 * 3600.0
SESSIONS_MAX = 64
"""Maximum concurrent sessions. A further session ends one of the client with the most sessions."""
SESSIONS_PER_CLIENT = 16
"""Maximum sessions of one client. A further session of the client ends one of its earlier sessions."""
LOGIN_PATH = "/page/login"
FIELD_NAME = "token"
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #f7f6f2; --card: #fff; --line: #8a919c; --act: #0b5c6b;
  --bad: #a3221f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --paper: #14181d; --card: #1d232a; --line: #7d8794; --act: #7fd0dd; --bad: #ffa39c; }
}
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
form { width: min(22rem, calc(100vw - 2rem)); padding: 1.75rem; box-sizing: border-box; background: var(--card);
  border-radius: .75rem; display: grid; gap: .75rem; }
h1 { margin: 0; font-size: 1.25rem; }
p { margin: 0; }
[role=alert] { color: var(--bad); }
input, button { font: inherit; padding: .6rem .75rem; border-radius: .4rem; border: 1px solid var(--line); }
input { background: var(--paper); color: inherit; }
button { background: var(--act); color: var(--card); border-color: transparent; cursor: pointer; }
:focus-visible { outline: 3px solid var(--act); outline-offset: 2px; }
"""
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in · hippod</title>
<link rel="icon" href="data:,">
<style>{style}</style>
<main>
<form method="post" action="{path}">
<h1>hippod</h1>
{note}<label for="token">Token</label>
<input id="token" name="{field}" type="password" autocomplete="current-password" required autofocus>
<button>Open the memory</button>
<p>The token is the line in the file that <code>token_file</code> names in the configuration.</p>
</form>
</main>
</html>
"""
HOME_PATH = "/"
SESSION_PATH = "/page/session"
LOGOUT_PATH = "/page/logout"
SESSION_HEADER = "x-hippod-session"
"""Header added for the page's own routes: the request belongs to a login, which can be ended."""
LOGIN_FORM_BYTES_MAX = 8 * 1024


@dataclass(frozen=True, slots=True)
class LoginSession:
    """A login. `token` was sent at the login and is checked again with each request, so the login ends with its token."""

    token: bytes
    ends: float
    client: str
    """The client that the token belongs to."""
    address: str
    """The address that logged in: people may share a token."""


class LoginSessions:
    """The logins, looked up by a digest of their cookie, so that the duration of a look-up reveals nothing about cookies."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[bytes, LoginSession] = {}

    def begin(self, token: bytes, client: str, address: str) -> str:
        """Begins a session; returns its cookie."""
        now = self._clock()
        for digest in [digest for digest, session in self._open.items() if session.ends <= now]:
            del self._open[digest]
        by_client = Counter(session.client for session in self._open.values())
        if by_client[client] >= SESSIONS_PER_CLIENT:
            self._end_oldest(client)
        elif len(self._open) >= SESSIONS_MAX:
            self._end_oldest(max(by_client, key=by_client.__getitem__))
        cookie = secrets.token_urlsafe(32)
        self._open[_digest(cookie)] = LoginSession(token, now + SESSION_LIFETIME_S, client, address)
        return cookie

    def _end_oldest(self, client: str) -> None:
        """Ends the oldest session of the address from which `client` has the most sessions."""
        sessions = {digest: session for digest, session in self._open.items() if session.client == client}
        by_address = Counter(session.address for session in sessions.values())
        address = max(by_address, key=by_address.__getitem__)
        del self._open[next(digest for digest, session in sessions.items() if session.address == address)]

    def find(self, cookie: str) -> LoginSession | None:
        session = self._open.get(_digest(cookie)) if cookie else None
        if session is not None and session.ends <= self._clock():
            self.end(cookie)
            return None
        return session

    def end(self, cookie: str) -> None:
        self._open.pop(_digest(cookie), None)


def _digest(cookie: str) -> bytes:
    return sha256(cookie.encode()).digest()


def login_page(wrong: bool = False) -> HTMLResponse:
    """Returns the form with status 401. `wrong`: adds a message that the token is wrong."""
    note = '<p role="alert">That is not the token.</p>\n' if wrong else ""
    digest = b64encode(sha256(_STYLE.encode()).digest()).decode()
    headers = {**login_headers(digest), "WWW-Authenticate": 'Bearer realm="hippod"'}
    return HTMLResponse(_PAGE.format(style=_STYLE, path=LOGIN_PATH, field=FIELD_NAME, note=note), 401, headers)


class LoginMiddleware:
    """Serves logins. A browser's request for the page without a token gets the login form; other requests raise
    Unauthorised."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._sessions = LoginSessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["type"] != "http" or "authorization" in headers:
            await self._app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        if method == "POST" and path == LOGIN_PATH:
            await self._login(scope, receive, send)
            return
        cookie = cookie_value(headers.get("cookie", ""), _cookie_name(scope))
        session = self._sessions.find(cookie)
        if session is None:
            await self._without_session(scope, receive, send, headers)
            return
        refuse_other_origins(scope, by_cookie=True)
        if method == "POST" and path == LOGOUT_PATH:
            self._sessions.end(cookie)
            await RedirectResponse(HOME_PATH, 303, {"Set-Cookie": _set_cookie(scope, "", 0), **SECURITY_HEADERS})(
                scope, receive, send
            )
            return
        try:
            await self._app(_with_token(scope, session.token), receive, send)
        except Unauthorised:  # the token has changed, so its logins end
            self._sessions.end(cookie)
            await self._without_session(scope, receive, send, headers)

    async def _without_session(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        try:
            await self._app(scope, receive, send)
        except Unauthorised:
            if scope["method"] != "GET" or scope["path"] != HOME_PATH or "text/html" not in headers.get("accept", ""):
                raise
            await login_page()(scope, receive, send)

    async def _login(self, scope: Scope, receive: Receive, send: Send) -> None:
        refuse_other_origins(scope, by_cookie=True)
        # An unfinished form must not keep a connection from a client that has the token.
        mark_unauthenticated(scope)
        token = await _read_token(receive)
        try:
            await self._check_token(scope, token)
        except Unauthorised:
            await login_page(wrong=True)(scope, receive, send)
            return
        cookie = self._sessions.begin(token, identity_of(scope), request_peer(scope).client)
        headers = {"Set-Cookie": _set_cookie(scope, cookie, int(SESSION_LIFETIME_S)), **SECURITY_HEADERS}
        await RedirectResponse(HOME_PATH, 303, headers)(scope, receive, send)

    async def _check_token(self, scope: Scope, token: bytes) -> None:
        """Raises Unauthorised if the token is wrong, by requesting a route that answers without content."""

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignored(_message: Message) -> None:
            return

        probe: Scope = {
            **_with_token(scope, token),
            "method": "GET",
            "path": SESSION_PATH,
            "raw_path": SESSION_PATH.encode(),
        }
        await self._app(probe, nothing, ignored)


def _with_token(scope: Scope, token: bytes) -> Scope:
    """Returns the request as a program would send it: with the token, without the cookie."""
    request = dict(scope)
    headers = MutableHeaders(raw=[pair for pair in scope["headers"] if pair[0] != b"cookie"])
    headers[SESSION_HEADER] = "yes"
    headers["authorization"] = f"Bearer {token.decode('latin-1')}"
    request["headers"] = headers.raw
    return request


def _cookie_name(scope: Scope) -> str:
    """Returns the cookie's name, which contains the port: cookies ignore ports, and a machine may run several daemons."""
    return f"hippod-{scope['server'][1]}"


def _set_cookie(scope: Scope, value: str, life_s: int) -> str:
    return f"{_cookie_name(scope)}={value}; Max-Age={life_s}; Path=/; HttpOnly; SameSite=Strict"


async def _read_token(receive: Receive) -> bytes:
    """Returns the token of a login form as entered. Raises RequestError if the body is not such a form."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > LOGIN_FORM_BYTES_MAX:
            raise TooLarge(f"A login form has at most {LOGIN_FORM_BYTES_MAX} bytes.")
        if not message.get("more_body", False):
            break
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=4)
    except ValueError:
        return b""
    # A header consists of bytes, so a non-ASCII token is compared in UTF-8.
    return fields.get(FIELD_NAME, [""])[0].strip().encode()
