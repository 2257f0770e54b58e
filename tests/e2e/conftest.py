"""Daemons for the tests, stopped after each test; the log of a failed test is shown."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.real_hippod import Daemon

Hippo = Callable[..., Daemon]


@pytest.fixture
def hippo(tmp_path: Path) -> Iterator[Hippo]:
    """Makes daemons that are not started yet: `hippo()` in the test's folder, `hippo("other")` in a folder below it."""
    made: list[Daemon] = []

    def make(name: str = "", **settings: Any) -> Daemon:
        daemon = Daemon(tmp_path / name, **settings)
        made.append(daemon)
        return daemon

    yield make
    for daemon in made:
        daemon.close()
        print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Yields one daemon for the tests of a module, on the `hash` encoder."""
    with Daemon(tmp_path_factory.mktemp("live")) as daemon:
        yield daemon
    print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")
