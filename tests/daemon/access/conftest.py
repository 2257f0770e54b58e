"""One memory with two clients that see different parts and a third that sees all, for attempts to exceed access rights."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.daemon.mcp.sdk_client import free_port
from tests.e2e.real_hippod import PATIENCE_S, Daemon, Json, write_config
from tests.memory.llm.model_server import ModelServer, obedient

SECRET = "zanzibarium"
"""Occurs in every text, title, name, label, path and metadata that only the board may see."""
BOARD: dict[str, str | bytes] = {
    "wages.md": f"# {SECRET} wages\n\nSolveig Aas earns {SECRET} crowns. The {SECRET} mill of Ternby belongs to Solveig Aas.\n",
    f"{SECRET}.txt": f"Torgeir Vik bought {SECRET} from Solveig Aas in Ternby.",
    f"{SECRET}-broken.docx": b"PK\x03\x04 and then nothing that is a document",
}
PUBLIC: dict[str, str | bytes] = {
    "mill.md": "# The mill\n\nSolveig Aas built the mill of Ternby in 1790. Ternby lies on the river Ask.\n",
    "bridge.txt": "Torgeir Vik designed the bridge of Ternby. Torgeir Vik was a pupil of Solveig Aas.",
    "broken.docx": b"PK\x03\x04 and then nothing that is a document",
}
MIXED = [
    {"id": "open", "text": "The river Ask flows through Ternby.", "labels": ["public"]},
    {"id": f"closed-{SECRET}", "text": f"The ferry of Ternby is {SECRET}.", "labels": ["board"]},
]
ADDED = [
    {"id": "news", "title": "News", "text": "The Ternby Post was founded in 1850.", "labels": ["public"]},
    {
        "id": f"minutes-{SECRET}",
        "title": f"{SECRET} minutes",
        "text": f"The board of Ternby met about {SECRET}. Solveig Aas spoke of {SECRET}.",
        "labels": ["board", SECRET],
        "topic": SECRET,
    },
]
QUESTION = "Who designed the bridge in the town where Solveig Aas built the mill, and what did Solveig Aas sell?"


@dataclass
class Memory:
    """A daemon with its clients. `model` answers questions; each client has a connection with its token over TCP."""

    daemon: Daemon
    model: ModelServer
    tokens: dict[str, str]

    def client(self, name: str) -> httpx2.Client:
        return httpx2.Client(
            base_url=f"http://{self.daemon.sections['api']['tcp']}",
            headers={"authorization": f"Bearer {self.tokens[name]}"},
            timeout=PATIENCE_S,
            trust_env=False,
        )


def client_tables(home: Any, tokens: dict[str, str]) -> list[Json]:
    """Returns the client tables.

    `visitor` reads public documents; `clerk` also writes them; `board` reads and writes its own; the user of the socket may do
    everything.
    """
    rights = {"visitor": ["read"], "clerk": ["read", "write"], "board": ["read", "write"], "writer": ["write"]}
    labels = {"visitor": ["public"], "clerk": ["public"], "board": ["board"], "writer": ["public", "press"]}
    tables: list[Json] = [
        {"name": "operator", "user": str(os.getuid()), "labels": ["*"], "rights": ["read", "write", "admin"]}
    ]
    for name, may in rights.items():
        tokens[name] = f"token-of-{name}"
        (home / name).write_text(tokens[name])
        tables.append({"name": name, "token_file": str(home / name), "labels": labels[name], "rights": may})
    return tables


@pytest.fixture(scope="package")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    home = tmp_path_factory.mktemp("clients")
    tokens: dict[str, str] = {}
    with ModelServer(obedient) as model:
        daemon = Daemon(
            home,
            [f"board-{SECRET}", "public", "mixed"],
            api={"tcp": f"127.0.0.1:{free_port()}"},
            mcp={"write": True},
            llm={"base_url": model.url, "model": "test-model", "timeout_s": 60.0, "max_retries": 0},
            client=client_tables(home, tokens),
        )
        for table, label in zip(daemon.sections["folder"], ("board", "public", None), strict=True):
            table["labels"] = [] if label is None else [label]
        rewrite(daemon)
        for folder, files in zip(daemon.folders, (BOARD, PUBLIC), strict=False):
            for name, text in files.items():
                (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        lines = "".join(json.dumps(each) + "\n" for each in MIXED)
        (daemon.folders[2] / "lines.jsonl").write_text(lines)
        with daemon:
            daemon.add(*ADDED)
            daemon.wait()
            yield Memory(daemon, model, tokens)
        print(f"--- logged:\n{daemon.log_text()[-6000:]}")


def rewrite(daemon: Daemon) -> None:
    """Writes the configuration from the present `sections`."""
    write_config(daemon.config, daemon.sections)
