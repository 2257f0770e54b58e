"""Makes the README's pictures from the example drive with the packaged encoder, if HIPPOD_PICTURES is set."""

import os
import shutil
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.daemon.page.browsing import base_url, opened, page_daemon
from tests.e2e.real_hippod import ROOT

PICTURES = ROOT / "docs" / "images"
MOST_BYTES = 200_000
NAMES = ("page.png", "page-graph.png")


@pytest.mark.parametrize("name", NAMES)
def test_readme_pictures_have_an_acceptable_size(name: str) -> None:
    assert f"docs/images/{name}" in (ROOT / "README.md").read_text("utf-8")
    assert 10_000 < (PICTURES / name).stat().st_size <= MOST_BYTES


@pytest.mark.browser
@pytest.mark.daemon
@pytest.mark.skipif("HIPPOD_PICTURES" not in os.environ, reason="with HIPPOD_PICTURES=1, takes the README's pictures")
def test_take_the_readme_pictures(browser: Browser, tmp_path: Path) -> None:
    question = (ROOT / "examples" / "first-question.txt").read_text("utf-8").strip()
    shutil.copytree(ROOT / "examples" / "drive", tmp_path / "drive")
    with page_daemon(tmp_path, encoder={"backend": "sentence-transformers"}) as daemon:
        daemon.wait()
        with opened(browser, base_url(daemon), width=1360, height=880) as watched:
            page = watched.page
            page.locator("#beside").check()
            ask(page, question)
            keep(page.screenshot(), "page.png")
        with opened(browser, base_url(daemon), width=1180, height=900, dark=True) as watched:
            page = watched.page
            ask(page, question)
            page.locator("#answers .hit").nth(1).get_by_role("button", name="Why").click()
            graph = page.locator("section", has=page.locator("#graph"))
            graph.scroll_into_view_if_needed()
            keep(graph.screenshot(), "page-graph.png")


def ask(page: Page, question: str) -> None:
    page.locator("#question").fill(question)
    page.locator("#question").press("Enter")
    expect(page.locator("#canvas")).to_have_attribute("data-about", question)
    expect(page.locator("#canvas")).to_have_attribute("aria-busy", "false")
    page.wait_for_timeout(1500)  # until the highlighting of new nodes has faded and the charts are drawn


def keep(taken: bytes, name: str) -> None:
    """Writes the picture as small as possible, because the repository keeps every picture for ever."""
    place = PICTURES / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(taken)
    with Image.open(place) as image:
        plain = image.convert("RGB")
    if len(taken) > MOST_BYTES // 2:  # 256 of the existing colours, because the rare ones must not be lost
        plain = plain.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    plain.save(place, optimize=True)
