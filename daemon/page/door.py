"""The page's way in on TCP: a login that turns the token into a cookie, and the cookie back into the token.

It stands before `daemon.api.guard.Guard`, which alone judges: whoever comes with a cookie is shown to the guard with the
token of that cookie's login, under all of the guard's other conditions.
"""

from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daemon.api.errors import Forbidden, TooLarge, Unauthorised
from daemon.api.peers import call_stranger
from daemon.contract.browser import cookie_value, same_origin
from daemon.page import login
from daemon.page.policy import SECURITY
from daemon.page.sessions import LIFE_S, Sessions

HOME = "/"
SESSION = "/page/session"
LOGOUT = "/page/logout"
BY_SESSION = "x-hippod-session"
"""A header that tells the page's own routes that there is a session to end."""
FORM_BYTES = 8 * 1024


class Door:
    """Unauthorised stays what it is for programs; a browser that asks for the page is asked for the token."""

    def __init__(self, guarded: ASGIApp) -> None:
        self._guarded = guarded
        self._sessions = Sessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["type"] != "http" or "authorization" in headers:
            await self._guarded(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        if method == "POST" and path == login.PATH:
            await self._login(scope, receive, send)
            return
        cookie = cookie_value(headers.get("cookie", ""), _name(scope))
        session = self._sessions.find(cookie)
        if session is None:
            await self._stranger(scope, receive, send, headers)
            return
        _refuse_others(method, headers)
        if method == "POST" and path == LOGOUT:
            self._sessions.end(cookie)
            await RedirectResponse(HOME, 303, {"Set-Cookie": _set_cookie(scope, "", 0), **SECURITY})(
                scope, receive, send
            )
            return
        try:
            await self._guarded(_shown(scope, session.token), receive, send)
        except Unauthorised:  # the token was changed: what it opened is closed
            self._sessions.end(cookie)
            await self._stranger(scope, receive, send, headers)

    async def _stranger(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        try:
            await self._guarded(scope, receive, send)
        except Unauthorised:
            if scope["method"] != "GET" or scope["path"] != HOME or "text/html" not in headers.get("accept", ""):
                raise
            await login.page()(scope, receive, send)

    async def _login(self, scope: Scope, receive: Receive, send: Send) -> None:
        _refuse_others("POST", Headers(scope=scope))
        # Whoever has the token asks with it: half a form must not keep a place from them.
        call_stranger(scope)
        token = await _token(receive)
        try:
            await self._ask_guard(scope, token)
        except Unauthorised:
            await login.page(wrong=True)(scope, receive, send)
            return
        cookie = self._sessions.begin(token)
        headers = {"Set-Cookie": _set_cookie(scope, cookie, int(LIFE_S)), **SECURITY}
        await RedirectResponse(HOME, 303, headers)(scope, receive, send)

    async def _ask_guard(self, scope: Scope, token: bytes) -> None:
        """Raises what the guard raises for a request with this token; what is behind it answers without a content."""

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(_message: Message) -> None:
            return

        probe: Scope = {**_shown(scope, token), "method": "GET", "path": SESSION, "raw_path": SESSION.encode()}
        await self._guarded(probe, nothing, unheard)


def _refuse_others(method: str, headers: Headers) -> None:
    known: Mapping[str, str] = dict(headers)
    if not same_origin(method, known):
        raise Forbidden("This was sent for a page of another site; hippod's own page is served from its own address.")


def _shown(scope: Scope, token: bytes) -> Scope:
    """The request as a program would send it: with the token, without the cookie."""
    shown = dict(scope)
    headers = MutableHeaders(raw=[pair for pair in scope["headers"] if pair[0] != b"cookie"])
    headers[BY_SESSION] = "yes"
    headers["authorization"] = f"Bearer {token.decode('latin-1')}"
    shown["headers"] = headers.raw
    return shown


def _name(scope: Scope) -> str:
    """A cookie's name: cookies know no ports, and several daemons may run on one machine."""
    return f"hippod-{scope['server'][1]}"


def _set_cookie(scope: Scope, value: str, life_s: int) -> str:
    return f"{_name(scope)}={value}; Max-Age={life_s}; Path=/; HttpOnly; SameSite=Strict"


async def _token(receive: Receive) -> bytes:
    """The token of a login form, as it was written; ApiError for a body that is no such form."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > FORM_BYTES:
            raise TooLarge(f"A login form has at most {FORM_BYTES} bytes.")
        if not message.get("more_body", False):
            break
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=4)
    except ValueError:
        return b""
    # The guard reads a header's bytes: a token that is not ASCII is what its UTF-8 is.
    return fields.get(login.FIELD, [""])[0].strip().encode()
