"""One daemon for the tests of agents: on TCP, with a scripted model and writing enabled."""

from collections.abc import Iterator

import pytest

from tests.daemon.mcp.sdk_client import with_tcp
from tests.e2e.real_hippod import Daemon
from tests.memory.llm.model_server import ModelServer, obedient

PAGES = 130
"""More documents than one page of resources has."""


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with ModelServer(obedient) as model:
        daemon = with_tcp(
            tmp_path_factory.mktemp("agents"),
            mcp={"write": True},
            llm={"base_url": model.url, "model": "test-model"},
            retrieval={"filter": "none"},
        )
        with daemon:
            (daemon.folders[0] / "lamp.md").write_text(
                "# Project Attic\n\nSabine Rell built the Quill lamp for Project Attic. Sabine Rell lives in Pellaston.\n"
            )
            daemon.add(
                *[
                    {"id": f"note-{n:03d}", "title": f"Note {n}", "text": f"Gull number {n} sat here."}
                    for n in range(PAGES)
                ]
            )
            daemon.wait()
            yield daemon
        print(f"--- logged:\n{daemon.log_text()[-6000:]}")
