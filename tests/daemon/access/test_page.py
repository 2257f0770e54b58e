"""The page in a browser, as two users: each sees its own documents and is offered its permitted actions."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.daemon.access.conftest import QUESTION, SECRET, Memory
from tests.daemon.page.browsing import PATIENCE_MS, Watched, base_url, browsing, opened

pytestmark = [pytest.mark.browser, pytest.mark.daemon]
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


def asked(page: Page) -> str:
    """Returns what the page shows after a question, including its suggested scopes."""
    page.locator("#question").fill(QUESTION)
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#canvas")).to_have_attribute("data-about", QUESTION)
    expect(page.locator("#canvas")).to_have_attribute("aria-busy", "false")
    page.locator("#scope").focus()
    expect(page.locator("#scopes option").first).to_be_attached()
    expect(page.locator("#failure-list li")).to_have_count(1)
    return page.content()


def shown(browser: Browser, memory: Memory, name: str) -> Iterator[Watched]:
    with opened(browser, base_url(memory.daemon), token=memory.tokens[name]) as watched:
        yield watched


def test_page_shows_a_visitor_only_public_documents(browser: Browser, memory: Memory) -> None:
    for watched in shown(browser, memory, "visitor"):
        text = asked(watched.page)
        assert "Solveig Aas built the mill" in text
        assert SECRET not in text.lower()
        assert "board" not in text
        expect(watched.page.locator("#count-documents")).to_have_text("4")
        expect(watched.page.locator("#failures button").first).to_be_hidden()  # it may not retry
        assert watched.complaints == []
        assert not [url for url in watched.asked if url.endswith("/metrics")]


def test_page_shows_the_board_client_only_its_own_documents(browser: Browser, memory: Memory) -> None:
    for watched in shown(browser, memory, "board"):
        text = asked(watched.page)
        assert SECRET in text
        assert "label: board" in text
        assert "label: public" not in text
        assert watched.complaints == []
