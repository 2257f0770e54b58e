"""The page needs the token, a login lasts as long as its token, and no other site can use it."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from daemon.api.settings import ApiLimits
from daemon.contract.base import Problem
from daemon.contract.http.routes import ProblemType, Route
from daemon.page.login import SESSION_LIFETIME_S, SESSIONS_MAX, SESSIONS_PER_CLIENT, LoginSessions
from tests.daemon.api.harness import PATIENCE_S, Served, read_all, read_one, served, until
from tests.daemon.other_sites import HEADERS_OF_OTHER_SITES

TOKEN = "sesame-for-the-tests"
PATHS = [
    "/",
    "/page/page.js",
    "/page/style.css",
    "/page/lib/bokeh.min.js",
    "/page/overview",
    "/page/session",
]


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    return path


@pytest.fixture
def api(token_file: Path) -> Iterator[Served]:
    with served(tcp=("127.0.0.1", 0), token_file=token_file) as running:
        yield running


@pytest.fixture
def browser(api: Served) -> Iterator[httpx2.Client]:
    """Yields a client that keeps cookies and sends its origin like a browser."""
    assert api.server.tcp_address is not None
    base = f"http://127.0.0.1:{api.server.tcp_address[1]}"
    headers = {"Accept": "text/html,*/*", "Sec-Fetch-Site": "same-origin"}
    with httpx2.Client(base_url=base, headers=headers, timeout=PATIENCE_S) as client:
        yield client


def log_in(browser: httpx2.Client, token: str = TOKEN, **headers: str) -> httpx2.Response:
    all_headers = {"Origin": str(browser.base_url).rstrip("/")} | headers
    return browser.post("/page/login", data={"token": token}, headers=all_headers)


@pytest.mark.slow
@pytest.mark.parametrize("path", [*PATHS, Route.STATUS, Route.EVENTS, Route.DOCUMENTS, "/page/nothing", "/nothing"])
def test_request_without_a_session_is_refused_with_401(browser: httpx2.Client, path: str) -> None:
    answer = browser.get(path, headers={"Accept": "*/*"})
    assert answer.status_code == 401
    assert Problem.model_validate_json(answer.content).type == ProblemType.UNAUTHORISED


def test_browser_without_a_session_gets_a_self_contained_login_page(browser: httpx2.Client) -> None:
    answer = browser.get("/")
    assert answer.status_code == 401
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy and "unsafe" not in policy
    assert 'name="token" type="password"' in answer.text
    assert not {"src=", "commit", "documents"} & set(answer.text.split())


def test_token_opens_a_session_with_an_http_only_same_site_cookie(browser: httpx2.Client) -> None:
    answer = log_in(browser)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    assert {path: browser.head(path).status_code for path in PATHS} == {
        path: browser.get(path).status_code for path in PATHS
    }
    home = browser.get("/")
    assert (home.status_code, home.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert browser.get(Route.STATUS).status_code == 200
    assert browser.get("/page/session").json() == {"logout": True, "rights": ["admin", "read", "write"]}


def test_content_security_policy_allows_only_own_files_and_no_inline_code(browser: httpx2.Client) -> None:
    log_in(browser)
    policies = [browser.get("/").headers["content-security-policy"] for _ in range(2)]
    assert policies[0] != policies[1], "each page has a nonce of its own"
    parts = dict(part.split(" ", 1) for part in policies[0].split("; "))
    assert parts["default-src"] == "'none'"
    assert parts["script-src"] == parts["connect-src"] == parts["worker-src"] == parts["img-src"] == "'self'"
    assert parts["style-src"].startswith("'self' 'nonce-")
    assert parts["frame-ancestors"] == parts["base-uri"] == "'none'"
    assert parts["require-trusted-types-for"] == "'script'"
    text = browser.get("/").text
    assert " style=" not in text and "onclick" not in text and "<style" not in text
    assert text.count("<script") == text.count('<script src="/page/')


def test_login_with_a_wrong_token_opens_no_session(browser: httpx2.Client) -> None:
    answer = log_in(browser, "sesame")
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
    assert "That is not the token." in answer.text
    assert browser.get("/").status_code == 401


def test_invalid_or_too_large_login_form_is_refused(browser: httpx2.Client) -> None:
    origin = {"Origin": str(browser.base_url).rstrip("/")}
    assert browser.post("/page/login", content=b"\xff" * 100, headers=origin).status_code == 401
    assert browser.post("/page/login", content=b"token=" + b"x" * 20_000, headers=origin).status_code == 413


HALF = (
    b"POST /page/login HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 60\r\n\r\ntoken=se"
)
HOME = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/html\r\n\r\n"
ASKING = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n" % TOKEN.encode()


def connect(api: Served) -> socket.socket:
    assert api.server.tcp_address is not None
    return socket.create_connection(api.server.tcp_address, timeout=PATIENCE_S)


@pytest.fixture
def crowded(token_file: Path) -> Iterator[Served]:
    """Yields a server that accepts four connections at a time and has no time limits."""
    limits = ApiLimits(connections=4, body_grace_s=600.0, headers_timeout_s=600.0, read_stall_s=600.0, requests_per_s=0)
    with served(limits, tcp=("127.0.0.1", 0), token_file=token_file) as running:
        yield running


def test_stalled_login_form_is_refused_with_408(token_file: Path) -> None:
    with served(ApiLimits(body_grace_s=0.2), tcp=("127.0.0.1", 0), token_file=token_file) as api, connect(api) as plain:
        plain.sendall(HALF)
        answer = read_all(plain)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert Problem.model_validate_json(answer.partition(b"\r\n\r\n")[2]).type == ProblemType.TOO_SLOW


def test_incomplete_login_forms_on_all_connections_do_not_block_clients_with_a_token(crowded: Served) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            half = stack.enter_context(connect(crowded))
            half.sendall(HALF.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
            assert half.recv(100).startswith(b"HTTP/1.1 100 "), "the form is waited for"
        for _ in range(3):
            program = stack.enter_context(connect(crowded))
            program.sendall(ASKING)
            assert read_one(program).startswith(b"HTTP/1.1 200 ")
        with connect(crowded) as browser:
            browser.sendall(HALF.replace(b"60", b"%d" % len(b"token=" + TOKEN.encode())) + TOKEN[2:].encode())
            assert read_one(browser).startswith(b"HTTP/1.1 303 ")


@pytest.mark.slow
def test_authenticated_connection_is_kept_while_unauthenticated_ones_are_closed(crowded: Served) -> None:
    with contextlib.ExitStack() as stack:
        known = stack.enter_context(connect(crowded))
        known.sendall(ASKING)
        assert read_one(known).startswith(b"HTTP/1.1 200 ")
        for _ in range(12):
            stranger = stack.enter_context(connect(crowded))
            stranger.sendall(HOME)
            assert read_one(stranger).startswith(b"HTTP/1.1 401 ")
        known.sendall(ASKING)
        assert read_one(known).startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
def test_clients_that_do_not_read_their_401_answers_do_not_block_others(crowded: Served) -> None:
    """They request the page repeatedly until so much is unread that the daemon stops reading, too."""
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            plain = stack.enter_context(socket.socket())
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plain.connect(crowded.server.tcp_address or ("", 0))
            plain.settimeout(0.3)
            with contextlib.suppress(TimeoutError):
                while True:
                    plain.sendall(HOME * 20)

        def let_in() -> bool:
            with connect(crowded) as plain:
                plain.sendall(ASKING)
                return read_one(plain).startswith(b"HTTP/1.1 200 ")

        # On a busy machine the daemon is still processing their requests, and then they count as active like anybody else.
        until(let_in, "one of them makes room")


@pytest.mark.slow
@pytest.mark.parametrize("headers", HEADERS_OF_OTHER_SITES)
def test_cross_site_requests_cannot_use_a_session_or_log_in(browser: httpx2.Client, headers: dict[str, str]) -> None:
    log_in(browser)
    for method, path in (("GET", "/"), ("GET", Route.STATUS), ("POST", Route.RETRY), ("POST", "/page/logout")):
        answer = browser.request(method, path, headers=headers)
        assert (answer.status_code, "commit" in answer.text) == (403, False), path
    form = {"token": TOKEN}
    assert browser.post("/page/login", data=form, headers=headers).status_code == 403
    assert browser.get(Route.STATUS).status_code == 200, "the session is as it was"


@pytest.mark.slow
@pytest.mark.parametrize("headers", HEADERS_OF_OTHER_SITES)
def test_cross_site_request_for_the_login_page_is_refused(browser: httpx2.Client, headers: dict[str, str]) -> None:
    assert browser.get("/", headers=headers).status_code == 403


def test_post_request_in_a_session_needs_an_origin_header(browser: httpx2.Client) -> None:
    log_in(browser)
    del browser.headers["Sec-Fetch-Site"]
    assert browser.post(Route.RETRY).status_code == 403
    assert browser.post(Route.RETRY, headers={"Origin": str(browser.base_url).rstrip("/")}).status_code == 200
    assert log_in(browser, Origin="http://evil.example").status_code == 403


def test_unknown_host_header_is_refused_in_a_session(browser: httpx2.Client) -> None:
    log_in(browser)
    assert browser.get("/", headers={"Host": "evil.example"}).status_code == 421


def test_logging_out_ends_the_session(browser: httpx2.Client) -> None:
    log_in(browser)
    cookies = dict(browser.cookies)
    assert browser.post("/page/logout").status_code == 303
    assert browser.get("/", cookies=cookies).status_code == 401


@pytest.mark.slow
def test_changing_the_token_ends_its_sessions(browser: httpx2.Client, token_file: Path) -> None:
    log_in(browser)
    assert browser.get(Route.STATUS).status_code == 200
    token_file.write_text("another-token")
    until(lambda: browser.get(Route.STATUS).status_code == 401, "the session is over")
    token_file.write_text(TOKEN)
    assert browser.get("/").status_code == 401, "and does not come back"


def test_programs_need_no_session(browser: httpx2.Client) -> None:
    assert browser.get(Route.STATUS, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert browser.get("/", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_login_sessions_are_limited_per_client_and_expire() -> None:
    now = 0.0
    sessions = LoginSessions(lambda: now)
    first = sessions.begin(b"token", "one", "::1")
    later = [sessions.begin(b"token", "one", "::1") for _ in range(SESSIONS_PER_CLIENT)]
    assert sessions.find(first) is None
    assert all(sessions.find(each) for each in later)
    now = SESSION_LIFETIME_S
    assert sessions.find(later[-1]) is None
    assert sessions.find("") is sessions.find("anything") is None


def test_the_logins_of_one_client_end_no_session_of_another() -> None:
    sessions = LoginSessions()
    other = sessions.begin(b"token", "other", "::1")
    for _ in range(2 * SESSIONS_MAX):
        sessions.begin(b"token", "one", "::2")
    assert sessions.find(other) is not None


def test_logins_from_one_address_end_no_session_of_another_address() -> None:
    sessions = LoginSessions()
    elsewhere = sessions.begin(b"token", "one", "::1")
    for _ in range(2 * SESSIONS_MAX):
        sessions.begin(b"token", "one", "::2")
    assert sessions.find(elsewhere) is not None


def test_session_limit_is_kept_by_ending_a_session_of_the_client_with_most() -> None:
    sessions = LoginSessions()
    for number in range(SESSIONS_MAX // SESSIONS_PER_CLIENT):
        few = [sessions.begin(b"token", f"{number}", "::1") for _ in range(SESSIONS_PER_CLIENT)]
    last = sessions.begin(b"token", "newcomer", "::1")
    assert sessions.find(last) is not None
    assert sum(sessions.find(each) is not None for each in few) >= SESSIONS_PER_CLIENT - 1
