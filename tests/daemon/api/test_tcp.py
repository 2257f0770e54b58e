"""Over TCP no request is served without the token, or under a host name other than the daemon's."""

import io
import logging
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
import structlog
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs

from daemon.api.access import clients
from daemon.api.listen import ListenError, bind_tcp
from daemon.api.middleware.tcp_auth import host_name
from daemon.api.settings import ApiLimits, ApiSettings
from daemon.config_types.path_validators import read_token
from daemon.contract.base import Problem
from daemon.contract.http.routes import ProblemType, Route
from daemon.mcp.server import McpApp
from daemon.observe import logs
from tests.daemon.api.harness import PATIENCE_S, Served, read_all, served, until
from tests.daemon.other_sites import HEADERS_OF_OTHER_SITES

TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


@pytest.fixture
def api(token_file: Path) -> Iterator[Served]:
    with served(tcp=("127.0.0.1", 0), token_file=token_file) as running:
        yield running


def get(api: Served, token: str | None = TOKEN, host: str | None = None, path: str = Route.STATUS) -> httpx2.Response:
    assert api.server.tcp_address is not None
    port = api.server.tcp_address[1]
    headers = {} if token is None else {"Authorization": f"Bearer {token}".rstrip()}
    if host is not None:
        headers["Host"] = host
    return httpx2.get(f"http://127.0.0.1:{port}{path}", headers=headers, timeout=PATIENCE_S)


def test_request_with_the_token_is_served(api: Served) -> None:
    assert get(api).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("path", [Route.STATUS, Route.HEALTH, Route.METRICS, Route.OPENAPI, "/v1/nothing"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x"])
def test_request_without_the_token_is_refused_with_401(api: Served, token: str | None, path: str) -> None:
    answer = get(api, token, path=path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert Problem.model_validate_json(answer.content).type == ProblemType.UNAUTHORISED
    assert TOKEN not in answer.text


def test_token_with_another_authorization_scheme_is_refused(api: Served) -> None:
    assert api.server.tcp_address is not None
    url = f"http://127.0.0.1:{api.server.tcp_address[1]}{Route.STATUS}"
    assert httpx2.get(url, headers={"Authorization": f"Basic {TOKEN}"}).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7411", "localhost.evil.example", "127.0.0.1.evil.example"]
)
@pytest.mark.slow
def test_unknown_host_header_is_refused_despite_a_valid_token(api: Served, host: str) -> None:
    answer = get(api, host=host)
    assert answer.status_code == 421
    assert Problem.model_validate_json(answer.content).type == ProblemType.WRONG_HOST


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7411", "127.0.0.1", "[::1]:7411"])
def test_local_host_names_are_accepted_in_the_host_header(api: Served, host: str) -> None:
    assert get(api, host=host).status_code == 200


def test_changing_the_token_ends_event_streams_of_the_old_token(api: Served, token_file: Path) -> None:
    assert api.server.tcp_address is not None
    address = f"http://127.0.0.1:{api.server.tcp_address[1]}{Route.EVENTS}"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.stream("GET", address, headers=headers, timeout=PATIENCE_S) as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": hippod"
        token_file.write_text("another")
        until(lambda: get(api, "another").status_code == 200, "the new token lets in")
        assert not any(lines), "it has ended, and nothing came"


def test_changed_token_applies_without_a_restart(api: Served, token_file: Path) -> None:
    assert get(api).status_code == 200
    token_file.write_text("another")
    until(lambda: get(api, "another").status_code == 200, "the new token lets in")
    assert get(api, TOKEN).status_code == 401


@pytest.mark.slow
@pytest.mark.parametrize("content", ["two words", "semi;colon", "x" * 5_000, "absent: nobody has written it"])
def test_changed_token_that_is_invalid_refuses_all_requests(
    api: Served, token_file: Path, tmp_path: Path, content: str
) -> None:
    token_file.write_text(content)
    for token in (content, TOKEN):
        assert get(api, token).status_code == 401
    with pytest.raises(ListenError, match="token"), served(tcp=("127.0.0.1", 0), token_file=token_file):
        pass
    token_file.write_text(TOKEN)
    assert get(api).status_code == 200


def test_token_file_that_becomes_a_pipe_is_refused_without_delay(api: Served, token_file: Path) -> None:
    token_file.unlink()
    os.mkfifo(token_file)
    with capture_logs() as logged:
        assert [get(api).status_code for _ in range(3)] == [401] * 3
    [events] = [each for each in logged if each["event"] == "token_unreadable"]
    assert "not a regular file" in events["error"]
    assert api.client.get(Route.STATUS).status_code == 200
    token_file.unlink()
    token_file.write_text(TOKEN)
    assert get(api).status_code == 200


class Drive:
    """A gate between the guard and its token file: reading waits until `back` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.back = threading.Event(), threading.Event()
        monkeypatch.setattr(clients, "read_token", self.read)

    def read(self, path: Path) -> str:
        self.asked.set()
        self.back.wait(PATIENCE_S)
        return read_token(path)


def test_token_file_on_hanging_drive_delays_only_requests_with_a_token(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = Drive(monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(get, api)
        try:
            assert drive.asked.wait(PATIENCE_S)
            assert api.client.get(Route.STATUS).status_code == 200
            assert get(api, None).status_code == 401
        finally:
            drive.back.set()
        assert waiting.result().status_code == 200


def test_requests_are_refused_while_the_drive_of_the_token_file_hangs(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = Drive(monkeypatch)
    monkeypatch.setattr(clients, "TOKEN_READ_TIMEOUT_S", 0.1)
    try:
        with capture_logs() as logged:
            assert [get(api).status_code for _ in range(2)] == [401] * 2
        assert [each["event"] for each in logged].count("token_unreadable") == 1
    finally:
        drive.back.set()
    monkeypatch.setattr(clients, "TOKEN_READ_TIMEOUT_S", PATIENCE_S)
    assert get(api).status_code == 200


@pytest.fixture
def log_lines() -> Iterator[io.StringIO]:
    """Yields hippod's log output as it is written."""
    root, secrets, lines = logging.getLogger(), set(logs._secrets), io.StringIO()
    level, handlers = root.level, list(root.handlers)
    logs.setup("info", lines)
    yield lines
    root.setLevel(level)
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
    for name in logs.OWN:
        logging.getLogger(name).setLevel(logging.NOTSET)
    logs._secrets.clear()
    logs._secrets.update(secrets)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def test_changed_token_is_masked_in_the_log_from_its_first_use(
    api: Served, token_file: Path, log_lines: io.StringIO
) -> None:
    token_file.write_text("another-token-0123456789")
    assert get(api, "another-token-0123456789").status_code == 200
    structlog.get_logger("daemon.tests").info("document_skipped", uri="file:///another-token-0123456789.txt")
    assert '"event": "document_skipped"' in log_lines.getvalue()
    assert "another-token" not in log_lines.getvalue()


def test_missing_or_empty_token_file_refuses_all_requests(api: Served, token_file: Path) -> None:
    token_file.unlink()
    assert get(api).status_code == 401
    token_file.write_text("")
    assert get(api).status_code == 401
    assert get(api, "").status_code == 401
    token_file.write_text(TOKEN)
    assert get(api).status_code == 200


def test_the_unix_socket_needs_no_token_and_no_host(api: Served) -> None:
    assert api.client.get(Route.STATUS, headers={"Host": "anything"}).status_code == 200


@pytest.mark.slow
def test_cors_preflight_of_another_origin_is_refused(api: Served) -> None:
    assert api.server.tcp_address is not None
    url = f"http://127.0.0.1:{api.server.tcp_address[1]}{Route.QUERY}"
    answer = httpx2.options(url, headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"})
    assert answer.status_code == 403
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_wildcard_address_accepts_any_ip_address_as_host_but_no_other_name(token_file: Path) -> None:
    with served(tcp=("0.0.0.0", 0), token_file=token_file) as api:
        assert get(api, host="192.0.2.7:7411").status_code == 200
        assert get(api, host="evil.example").status_code == 421


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_a_token_file_without_a_token_is_an_error_at_the_start(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ListenError, match="token"), served(tcp=("127.0.0.1", 0), token_file=path):
        pass


def test_tcp_without_a_token_file_is_an_error_at_the_start() -> None:
    with pytest.raises(ListenError, match="token_file"), served(tcp=("127.0.0.1", 0)):
        pass


def test_changed_token_file_path_applies_without_a_restart(api: Served, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.write_text("moved")
    api.server.use_token_file(moved)
    assert get(api).status_code == 401
    assert get(api, "moved").status_code == 200


@pytest.mark.parametrize(
    ("header", "name"), [("Box.lan.:80", "box.lan"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("", ""), ("a", "a")]
)
def test_a_host_header_is_read_without_its_port(header: str, name: str) -> None:
    assert host_name(header) == name


def test_tcp_is_off_unless_configured() -> None:
    assert ApiSettings(Path("s")).tcp is None


@pytest.mark.slow
@pytest.mark.parametrize("headers", HEADERS_OF_OTHER_SITES)
@pytest.mark.parametrize("path", [Route.STATUS, "/mcp"])
def test_cross_site_request_is_refused_despite_a_valid_token(
    token_file: Path, path: str, headers: dict[str, str]
) -> None:
    with served(tcp=("127.0.0.1", 0), token_file=token_file, tcp_apps={"/mcp": page}) as api:
        assert api.server.tcp_address is not None
        url = f"http://127.0.0.1:{api.server.tcp_address[1]}{path}"
        for method in ("GET", "POST"):
            answer = httpx2.request(method, url, headers={"Authorization": f"Bearer {TOKEN}", **headers})
            assert answer.status_code == 403
            assert Problem.model_validate_json(answer.content).type == ProblemType.FORBIDDEN
            assert not any(name.startswith("access-control") for name in answer.headers)


def test_same_origin_request_still_needs_the_token(api: Served) -> None:
    assert api.server.tcp_address is not None
    base = f"http://127.0.0.1:{api.server.tcp_address[1]}"
    own = {"Origin": base, "Sec-Fetch-Site": "same-origin"}
    assert httpx2.get(base + Route.STATUS, headers=own).status_code == 401
    assert httpx2.get(base + Route.STATUS, headers=own | {"Authorization": f"Bearer {TOKEN}"}).status_code == 200


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(f"the page at {scope['path']}")(scope, receive, send)


def test_tcp_only_app_requires_token_and_known_host(token_file: Path) -> None:
    with served(tcp=("127.0.0.1", 0), token_file=token_file, tcp_apps={"/page": page}) as api:
        assert get(api, None, path="/page/open").status_code == 401
        assert get(api, host="evil.example", path="/page/open").status_code == 421
        assert get(api, path="/page/open").text == "the page at /page/open"
        assert get(api, path="/pages").status_code == 404
        assert api.client.get("/page/open").status_code == 404


def test_stalled_body_of_an_mcp_request_is_refused_with_408(token_file: Path) -> None:
    """Bodies of agents' requests to the MCP app, which the SDK reads."""
    agents = McpApp("/nowhere", write=False)
    with served(
        ApiLimits(body_grace_s=0.2), tcp=("127.0.0.1", 0), token_file=token_file, tcp_apps={"/mcp": agents}
    ) as api:
        api.run(agents.start())
        assert api.server.tcp_address is not None
        with socket.create_connection(api.server.tcp_address, timeout=PATIENCE_S) as plain:
            head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
            plain.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
            answer = read_all(plain)
        api.run(agents.stop())
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert Problem.model_validate_json(answer.partition(b"\r\n\r\n")[2]).type == ProblemType.TOO_SLOW


def test_body_on_reused_connection_is_sent_before_the_head_is_acknowledged() -> None:
    with bind_tcp("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()) as _client:
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_backup_is_not_taken_over_tcp(api: Served, tmp_path: Path) -> None:
    assert api.server.tcp_address is not None
    url = f"http://127.0.0.1:{api.server.tcp_address[1]}{Route.BACKUP}"
    answer = httpx2.post(url, headers={"Authorization": f"Bearer {TOKEN}"}, json={"directory": str(tmp_path / "b")})
    assert answer.status_code == 403
    assert not (tmp_path / "b").exists()


def test_refused_request_is_logged_once_with_its_address_and_without_content(api: Served) -> None:
    with capture_logs() as logged:
        for _ in range(5):
            get(api, "a-wrong-secret")
    events = [each for each in logged if each["event"] == "request_refused"]
    assert [(each["status"], each["address"]) for each in events] == [(401, "127.0.0.1")]
    assert "a-wrong-secret" not in str(logged)
