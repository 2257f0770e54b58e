"""Scripted model servers, and daemons that extract with them, stopped when the test ends."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.real_hippod import Daemon
from tests.memory.llm.model_server import ModelServer, Script, obedient

Hippo = Callable[..., Daemon]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model that follows its prompts, until the test gives it another script."""
    with ModelServer(obedient) as server:
        yield server


@pytest.fixture
def serve() -> Iterator[Callable[..., ModelServer]]:
    made: list[ModelServer] = []

    def make(script: Script, **options: Any) -> ModelServer:
        made.append(ModelServer(script, **options).start())
        return made[-1]

    yield make
    for server in made:
        server.close()


@pytest.fixture
def hippo(tmp_path: Path) -> Iterator[Hippo]:
    """`hippo(server)`: a daemon that extracts with this server and is not started yet."""
    made: list[Daemon] = []

    def make(server: ModelServer, name: str = "", **sections: Any) -> Daemon:
        llm = {"base_url": server.url, "model": "test-model", "timeout_s": 20.0, **sections.pop("llm", {})}
        openie = {"backend": "llm", **sections.pop("openie", {})}
        daemon = Daemon(tmp_path / name, llm=llm, openie=openie, **sections)
        made.append(daemon)
        return daemon

    yield make
    for daemon in made:
        daemon.close()
        print(f"--- {daemon.home} logged:\n{daemon.log_text()[-6000:]}")
