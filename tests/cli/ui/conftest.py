"""A daemon with a few documents, and the page's browser if one is installed."""

from collections.abc import Iterator

import pytest

from tests.daemon.page.browsing import base_url, page_daemon
from tests.daemon.page.conftest import DOCUMENTS, browser
from tests.e2e.real_hippod import Daemon

__all__ = ["base", "browser", "daemon"]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Unlike the page's own daemon, it also starts without a browser: most of these tests send HTTP requests themselves."""
    daemon = page_daemon(tmp_path_factory.mktemp("ui"))
    for name, text in DOCUMENTS.items():
        daemon.write(name, text)
    with daemon:
        daemon.wait()
        yield daemon


@pytest.fixture(scope="module")
def base(daemon: Daemon) -> str:
    return base_url(daemon)
