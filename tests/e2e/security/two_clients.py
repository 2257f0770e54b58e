"""A daemon with clients that see different parts: `visitor` reads public documents, `clerk` writes too, `board` has its own."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.daemon.access.conftest import Memory, client_tables, rewrite
from tests.daemon.mcp.sdk_client import free_port
from tests.e2e.real_hippod import Daemon, Json, until
from tests.memory.llm.model_server import ModelServer, obedient

FOLDERS = {"open": "public", "closed": "board"}


@contextmanager
def two_clients(home: Path, **sections: Any) -> Iterator[Memory]:
    """Yields a daemon that follows a folder for each label and answers questions with a scripted model."""
    home.mkdir(parents=True, exist_ok=True)
    tokens: dict[str, str] = {}
    with ModelServer(obedient) as model:
        daemon = Daemon(
            home,
            list(FOLDERS),
            api={"tcp": f"127.0.0.1:{free_port()}"},
            llm={"base_url": model.url, "model": "test-model", "timeout_s": 60.0, "max_retries": 0},
            client=client_tables(home, tokens),
            **sections,
        )
        for table, label in zip(daemon.sections["folder"], FOLDERS.values(), strict=True):
            table["labels"] = [label]
        rewrite(daemon)
        with daemon:
            yield Memory(daemon, model, tokens)
        print(f"--- logged:\n{daemon.log_text()[-6000:]}")


def reload(daemon: Daemon) -> None:
    """Reloads the configuration from the present `daemon.sections`."""
    count = len(daemon.events("reloaded"))
    rewrite(daemon)
    daemon.signal(signal.SIGHUP)
    until(lambda: len(daemon.events("reloaded")) > count, "the configuration is read again")


def post(memory: Memory, client: str, path: str, body: Json) -> httpx2.Response:
    """Sends one request of a client, with its token over TCP."""
    with memory.client(client) as connection:
        return connection.post(path, json=body)
