"""`hippoctl ui`: the page over the Unix socket, for the one browser that opened its address first."""

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, expect

from tests.daemon.other_sites import HEADERS_OF_OTHER_SITES
from tests.daemon.page.browsing import COOKIE
from tests.e2e.real_hippod import PATIENCE_S, Daemon, clean_environment

pytestmark = pytest.mark.daemon


@dataclass(frozen=True, slots=True)
class Ui:
    """A running `hippoctl ui`. `opened`: a client with the session that its address became."""

    process: subprocess.Popen[str]
    url: str
    opened: httpx2.Client

    @property
    def base(self) -> str:
        return "http://" + urlsplit(self.url).netloc


def begin(daemon: Daemon) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        daemon.command("ui", "--no-browser", "--json"),
        env=clean_environment(daemon.home),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["url"]


@pytest.fixture(scope="module")
def ui(daemon: Daemon) -> Iterator[Ui]:
    process, url = begin(daemon)
    with httpx2.Client(timeout=PATIENCE_S, headers={"Sec-Fetch-Site": "none"}) as client:
        yield Ui(process, url, client)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(url)


def test_requests_before_the_address_was_opened_are_refused_with_401(ui: Ui) -> None:
    for path in ("/", "/v1/status", "/page/page.js", "/open", "/open?token=", "/open?token=wrong"):
        answer = httpx2.get(ui.base + path)
        assert (answer.status_code, "commit" in answer.text) == (401, False), path


def test_address_can_be_opened_by_one_browser_only(ui: Ui) -> None:
    assert urlsplit(ui.url).hostname == "127.0.0.1"
    assert httpx2.get(ui.url, headers={"Host": "evil.example"}).status_code == 421
    assert httpx2.get(ui.url, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    first = ui.opened.get(ui.url)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=Strict"} <= set(first.headers["set-cookie"].split("; "))
    assert httpx2.get(ui.url).status_code == 401
    assert "works once" in httpx2.get(ui.url).text
    assert ui.opened.get(ui.base + "/").status_code == 200
    assert ui.opened.get(ui.url).status_code == 303, "the browser that opened it may go back to it"


def test_ui_forwards_the_requests_of_the_page(ui: Ui, daemon: Daemon) -> None:
    page = ui.opened.get(ui.base + "/")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert ui.opened.get(ui.base + "/v1/status").json()["commit"] == daemon.status()["commit"]
    assert ui.opened.get(ui.base + "/page/session").json() == {"logout": False, "rights": ["admin", "read", "write"]}
    script = ui.opened.get(ui.base + "/page/page.js")
    again = ui.opened.get(ui.base + "/page/page.js", headers={"If-None-Match": script.headers["etag"]})
    assert (script.status_code, again.status_code) == (200, 304)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/export"),
        ("POST", "/v1/documents"),
        ("POST", "/v1/backup"),
        ("GET", "/page/../v1/export"),
        ("GET", "//x"),
    ],
)
def test_ui_forwards_no_other_route(ui: Ui, method: str, path: str) -> None:
    answer = ui.opened.request(method, ui.base + path, headers={"Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 404


def test_cross_site_requests_to_the_ui_are_refused(ui: Ui) -> None:
    for theirs in HEADERS_OF_OTHER_SITES:
        for method, path in (("GET", "/v1/status"), ("POST", "/v1/retry"), ("POST", "/v1/query")):
            assert ui.opened.request(method, ui.base + path, headers=theirs).status_code == 403, theirs
        assert httpx2.get(ui.url, headers=theirs).status_code == 403, theirs
    port = urlsplit(ui.base).port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{(port or 0) + 1}"):
        assert ui.opened.get(ui.base + "/v1/status", headers={"Host": host}).status_code == 421, host


@pytest.mark.browser
def test_page_works_through_the_ui_command(browser: Browser, daemon: Daemon) -> None:
    process, url = begin(daemon)
    context = browser.new_context()
    try:
        page = context.new_page()
        asked: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.goto(url)
        assert page.url == url.split("open?")[0]
        expect(page.locator("#standing-text")).to_contain_text("commit")
        uri = daemon.write("people/rue.md", "# Rue Amber\nRue Amber mends nets in Saltmouth.")
        expect(page.locator(f'#arrival-list [data-uri="{uri}"]')).to_have_attribute("data-state", "indexed")
        page.locator("#question").fill("Who mends nets")
        page.locator("#question").press("Enter")
        expect(page.locator("#answers")).to_contain_text("Rue Amber")
        expect(page.locator("#logout")).to_be_hidden()
        assert complaints == []
        assert all(url.startswith(page.url) for url in asked)
    finally:
        context.close()
        process.terminate()
        process.wait(PATIENCE_S)


def test_ui_without_a_daemon_exits_with_3(daemon: Daemon) -> None:
    done = subprocess.run(
        [*daemon.command()[:-1], f"{daemon.socket}-nobody", "ui", "--no-browser"],
        env=clean_environment(daemon.home),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "no hippod answers" in done.stderr


@pytest.mark.browser
def test_the_login_form_opens_the_page(browser: Browser, base: str) -> None:
    from tests.daemon.page.browsing import TOKEN

    context = browser.new_context()
    try:
        page = context.new_page()
        answer = page.goto(base)
        assert answer is not None and answer.status == 401
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button").click()
        expect(page.get_by_role("alert")).to_have_text("That is not the token.")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button").click()
        expect(page.locator("#standing-text")).to_contain_text("commit")
        (cookie,) = context.cookies()
        assert cookie["name"] == COOKIE.format(port=urlsplit(base).port)
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()
    finally:
        context.close()
