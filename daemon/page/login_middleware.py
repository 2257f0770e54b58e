"""The page's login on TCP: a form exchanges the token for a cookie, and this middleware exchanges the cookie for the token.

`daemon.api.middleware.tcp_auth` runs after it and makes the decision. It sees a request with a cookie as a request with the
token of that login, and checks the rest of the request as usual.
"""

from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.api.access.identity import identity_of
from daemon.api.middleware.peers import mark_unauthenticated, request_peer
from daemon.api.middleware.tcp_auth import refuse_other_origins
from daemon.contract.http.same_origin import cookie_value
from daemon.errors import TooLarge, Unauthorised
from daemon.page import login_page
from daemon.page.login_sessions import SESSION_LIFETIME_S, LoginSessions
from daemon.page.security_headers import SECURITY_HEADERS

HOME_PATH = "/"
SESSION_PATH = "/page/session"
LOGOUT_PATH = "/page/logout"
SESSION_HEADER = "x-hippod-session"
"""Header added for the page's own routes: the request belongs to a login, which can be ended."""
LOGIN_FORM_BYTES_MAX = 8 * 1024


class LoginMiddleware:
    """Serves logins. A browser's request for the page without a token gets the login form; other requests, Unauthorised."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._sessions = LoginSessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["type"] != "http" or "authorization" in headers:
            await self._app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        if method == "POST" and path == login_page.LOGIN_PATH:
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
            await login_page.login_page()(scope, receive, send)

    async def _login(self, scope: Scope, receive: Receive, send: Send) -> None:
        refuse_other_origins(scope, by_cookie=True)
        # An unfinished form must not keep a connection from a client that has the token.
        mark_unauthenticated(scope)
        token = await _read_token(receive)
        try:
            await self._check_token(scope, token)
        except Unauthorised:
            await login_page.login_page(wrong=True)(scope, receive, send)
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
    shown = dict(scope)
    headers = MutableHeaders(raw=[pair for pair in scope["headers"] if pair[0] != b"cookie"])
    headers[SESSION_HEADER] = "yes"
    headers["authorization"] = f"Bearer {token.decode('latin-1')}"
    shown["headers"] = headers.raw
    return shown


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
    # A header consists of bytes, so a token that is not ASCII is compared in UTF-8.
    return fields.get(login_page.FIELD_NAME, [""])[0].strip().encode()
