"""Over TCP nobody is served without the token, nor under a name that is not the daemon's."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs

from daemon.api.guard import host_name
from daemon.api.listen import ListenError
from daemon.api.settings import ApiSettings
from daemon.contract import Problem, ProblemType, Route
from tests.daemon.api_harness import PATIENCE_S, Served, served, until

TOKEN = "correct horse battery staple"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


@pytest.fixture
def api(token_file: Path) -> Iterator[Served]:
    with served(tcp=("127.0.0.1", 0), token_file=token_file) as running:
        yield running


def get(api: Served, token: str | None = TOKEN, host: str | None = None, path: str = Route.STATUS) -> httpx.Response:
    assert api.server.tcp_address is not None
    port = api.server.tcp_address[1]
    headers = {} if token is None else {"Authorization": f"Bearer {token}".rstrip()}
    if host is not None:
        headers["Host"] = host
    return httpx.get(f"http://127.0.0.1:{port}{path}", headers=headers, timeout=PATIENCE_S)


def test_the_token_lets_in(api: Served) -> None:
    assert get(api).status_code == 200


@pytest.mark.parametrize("path", [Route.STATUS, Route.HEALTH, Route.METRICS, Route.OPENAPI, "/v1/nothing"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x"])
def test_without_the_token_nothing_is_served(api: Served, token: str | None, path: str) -> None:
    answer = get(api, token, path=path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert Problem.model_validate_json(answer.content).type == ProblemType.UNAUTHORISED
    assert TOKEN not in answer.text


def test_another_scheme_is_not_a_token(api: Served) -> None:
    assert api.server.tcp_address is not None
    url = f"http://127.0.0.1:{api.server.tcp_address[1]}{Route.STATUS}"
    assert httpx.get(url, headers={"Authorization": f"Basic {TOKEN}"}).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7411", "localhost.evil.example", "127.0.0.1.evil.example"]
)
def test_another_host_is_refused_even_with_the_token(api: Served, host: str) -> None:
    answer = get(api, host=host)
    assert answer.status_code == 421
    assert Problem.model_validate_json(answer.content).type == ProblemType.WRONG_HOST


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7411", "127.0.0.1", "[::1]:7411"])
def test_the_machine_itself_is_served_under_its_names(api: Served, host: str) -> None:
    assert get(api, host=host).status_code == 200


def test_a_new_token_counts_without_a_restart(api: Served, token_file: Path) -> None:
    assert get(api).status_code == 200
    token_file.write_text("another")
    until(lambda: get(api, "another").status_code == 200, "the new token lets in")
    assert get(api, TOKEN).status_code == 401


def test_without_its_file_no_token_is_right(api: Served, token_file: Path) -> None:
    token_file.unlink()
    assert get(api).status_code == 401
    token_file.write_text("")
    assert get(api).status_code == 401
    assert get(api, "").status_code == 401
    token_file.write_text(TOKEN)
    assert get(api).status_code == 200


def test_the_unix_socket_needs_no_token_and_no_host(api: Served) -> None:
    assert api.client.get(Route.STATUS, headers={"Host": "anything"}).status_code == 200


def test_a_page_of_another_origin_gets_no_permission(api: Served) -> None:
    assert api.server.tcp_address is not None
    url = f"http://127.0.0.1:{api.server.tcp_address[1]}{Route.QUERY}"
    answer = httpx.options(url, headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"})
    assert answer.status_code == 403
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_wildcard_address_answers_to_any_address_but_not_to_any_name(token_file: Path) -> None:
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


def test_another_token_file_counts_without_a_restart(api: Served, tmp_path: Path) -> None:
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


def test_settings_keep_tcp_off_unless_told() -> None:
    assert ApiSettings(Path("s")).tcp is None


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_a_page_of_another_site_is_refused_even_with_the_token(api: Served, headers: dict[str, str]) -> None:
    assert api.server.tcp_address is not None
    url = f"http://127.0.0.1:{api.server.tcp_address[1]}{Route.STATUS}"
    answer = httpx.get(url, headers={"Authorization": f"Bearer {TOKEN}", **headers})
    assert answer.status_code == 403
    assert Problem.model_validate_json(answer.content).type == ProblemType.FORBIDDEN
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_its_own_page_and_a_followed_link_get_as_far_as_the_token(api: Served) -> None:
    assert api.server.tcp_address is not None
    base = f"http://127.0.0.1:{api.server.tcp_address[1]}"
    own = {"Origin": base, "Sec-Fetch-Site": "same-origin", "Authorization": f"Bearer {TOKEN}"}
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert httpx.get(base + Route.STATUS, headers=own).status_code == 200
    assert httpx.get(base + Route.STATUS, headers=link).status_code == 401


class Once:
    """A proof that holds once, for one path: as a link that opens a session would be."""

    def __init__(self) -> None:
        self.left = 1

    def admits(self, scope: Scope) -> bool:
        if scope["path"] == "/page/open" and scope["query_string"] == b"once=abc" and self.left:
            self.left -= 1
            return True
        return False


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(f"the page at {scope['path']}")(scope, receive, send)


def test_an_app_for_tcp_alone_stands_behind_the_same_guard(token_file: Path) -> None:
    with served(tcp=("127.0.0.1", 0), token_file=token_file, proofs=[Once()], tcp_apps={"/page": page}) as api:
        assert get(api, None, path="/page/open").status_code == 401
        assert get(api, host="evil.example", path="/page/open").status_code == 421
        assert get(api, path="/page/open").text == "the page at /page/open"
        assert get(api, None, path="/page/open?once=abc").text == "the page at /page/open"
        assert get(api, None, path="/page/open?once=abc").status_code == 401
        assert get(api, path="/pages").status_code == 404
        assert api.client.get("/page/open").status_code == 404


def test_a_backup_is_not_taken_over_tcp(api: Served, tmp_path: Path) -> None:
    assert api.server.tcp_address is not None
    url = f"http://127.0.0.1:{api.server.tcp_address[1]}{Route.BACKUP}"
    answer = httpx.post(url, headers={"Authorization": f"Bearer {TOKEN}"}, json={"directory": str(tmp_path / "b")})
    assert answer.status_code == 403
    assert not (tmp_path / "b").exists()


def test_who_is_turned_away_is_logged_once_with_its_address_and_without_what_it_sent(api: Served) -> None:
    with capture_logs() as logged:
        for _ in range(5):
            get(api, "a-wrong-secret")
    told = [each for each in logged if each["event"] == "turned_away"]
    assert [(each["status"], each["address"]) for each in told] == [(401, "127.0.0.1")]
    assert "a-wrong-secret" not in str(logged)
