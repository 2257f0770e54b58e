"""The page in the system's Chromium, recording its requests and console errors."""

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.e2e.real_hippod import Daemon

PATIENCE_MS = 60_000
TOKEN = "sesame-for-the-tests"
COOKIE = "hippod-{port}"


def chromium() -> str:
    """Returns the browser's path; skips the test if there is none."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    return path


@contextmanager
def browsing() -> Iterator[Browser]:
    """Yields a browser without its sandbox, which root cannot use; only the page under test is opened in it."""
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def page_daemon(home: Path, **sections: Any) -> Daemon:
    """Returns a daemon, not yet started, that serves the page on a free port of the loopback interface."""
    home.mkdir(parents=True, exist_ok=True)
    token = home / "token"
    token.write_text(TOKEN)
    with (
        socket.socket() as free
    ):  # another process may take the port before the daemon; this process does not hand it out again soon
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return Daemon(home, api={"tcp": f"127.0.0.1:{port}", "token_file": str(token)}, **sections)


def base_url(daemon: Daemon) -> str:
    return f"http://{daemon.sections['api']['tcp']}"


def log_in(base: str, token: str = TOKEN) -> str:
    """Returns a session's cookie."""
    answer = httpx2.post(f"{base}/page/login", data={"token": token}, headers={"Origin": base}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return answer.cookies[COOKIE.format(port=urlsplit(base).port)]


@dataclass
class Watched:
    """A page, with everything that it should not have done."""

    page: Page
    base: str
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def elsewhere(self) -> list[str]:
        """Returns the requests to addresses other than the page's."""
        return [url for url in self.asked if not url.startswith(self.base + "/")]


@contextmanager
def opened(
    browser: Browser, base: str, *, width: int = 1280, height: int = 900, dark: bool = False, token: str = TOKEN
) -> Iterator[Watched]:
    """Yields the page, logged in and connected, in a separate browser profile."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", timezone_id="UTC"
    )
    context.set_default_timeout(PATIENCE_MS)
    name = COOKIE.format(port=urlsplit(base).port)
    context.add_cookies(
        [{"name": name, "value": log_in(base, token), "url": base, "httpOnly": True, "sameSite": "Strict"}]
    )
    page = context.new_page()
    watched = Watched(page, base)
    page.on("request", lambda request: watched.asked.append(request.url))
    page.on("console", lambda said: watched.complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    page.on("dialog", lambda dialog: watched.complaints.append(f"a dialog: {dialog.message}"))
    try:
        page.goto(base)
        expect(page.locator("#standing-text")).to_contain_text("commit", timeout=PATIENCE_MS)
        yield watched
    finally:
        context.close()
