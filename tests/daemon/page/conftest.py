"""One browser per module, and one daemon for all tests of the page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.daemon.page.browsing import PATIENCE_MS, Watched, base_url, browsing, chromium, opened, page_daemon
from tests.e2e.real_hippod import Daemon, Json

expect.set_options(timeout=PATIENCE_MS)

BROKEN = "reports/broken.docx"
"""A file that fails at every attempt."""
LOCKED = "reports/locked.md"
"""A file that hippod may not read yet."""
DOCUMENTS = {
    "people/ada.md": "# Ada Quill\nAda Quill leads Project Tern. Ada Quill grew up in Marrowby, a village of nine houses.",
    "projects/tern.md": "# Project Tern\nProject Tern was founded by Ada Quill. Project Tern counts terns on Gull Rock.",
    "places/marrowby.md": "# Marrowby\nMarrowby lies on the river Sull. Marrowby has a church and a chain ferry.",
    "places/gull-rock.md": "# Gull Rock\nGull Rock stands off Saltmouth. Gull Rock was surveyed by Ivo Brandt.",
    "people/ivo.md": "# Ivo Brandt\nIvo Brandt surveyed Gull Rock and built the Saltmouth lighthouse.",
    "places/saltmouth.md": "# Saltmouth\nSaltmouth has a harbour. The Saltmouth lighthouse was built by Ivo Brandt.",
}


def ring(size: int = 2_400, each: int = 60) -> list[Json]:
    """Returns documents whose triples connect a few thousand phrases to many others, more than the page ever shows."""
    phrases = [f"station {number:04d}" for number in range(size)]
    triples = [
        [phrases[i], f"leads to {step}", phrases[(i + step) % size]] for i in range(size) for step in (1, 7, 53, 311)
    ]
    return [
        {"id": f"ring-{start}", "title": f"Ring {start}", "text": f"Ring {start} lists stations.", "triples": part}
        for start in range(0, len(triples), each * 4)
        if (part := triples[start : start + each * 4])
    ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser per module: while Playwright is open, its thread has an event loop, and other tests run their own."""
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Follows a drive with a few files, one of which is unreadable. Without a browser the daemon is not started."""
    chromium()
    daemon = page_daemon(
        tmp_path_factory.mktemp("page"), passages={"max_tokens": 120}, graph={"synonym_threshold": 0.97}
    )
    for name, text in DOCUMENTS.items():
        daemon.write(name, text)
    daemon.write(BROKEN, b"PK\x03\x04 and then nothing that is a document")
    daemon.write(LOCKED, "# Locked\nNobody reads this.")
    (daemon.drive / LOCKED).chmod(0)
    with daemon:
        daemon.wait()
        yield daemon
    print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")


@pytest.fixture(scope="session")
def base(daemon: Daemon) -> str:
    return base_url(daemon)


@pytest.fixture(scope="module")
def shown(browser: Browser, base: str) -> Iterator[Watched]:
    """Yields the page, open throughout a module."""
    with opened(browser, base) as watched:
        yield watched
