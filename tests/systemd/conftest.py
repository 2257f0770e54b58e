"""Daemons under a service manager, stopped after each test; the log of a failed test is shown."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.systemd.service_manager import Managed

Manage = Callable[..., Managed]


@pytest.fixture
def manage(tmp_path: Path) -> Iterator[Manage]:
    """Makes daemons that are not started yet."""
    made: list[Managed] = []

    def make(name: str = "", **settings: Any) -> Managed:
        made.append(Managed(tmp_path / name, **settings))
        return made[-1]

    yield make
    for daemon in made:
        daemon.close()
        print(
            f"--- {daemon.home} told its manager:\n{daemon.manager.texts()[-40:]}\n--- and logged:\n{daemon.log_text()[-6000:]}"
        )
