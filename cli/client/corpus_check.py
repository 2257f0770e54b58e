"""Prevents a HippoRAG corpus from replacing the documents of another corpus: both number their documents from 0."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cli.client.http import Client
from daemon.contract.choices import DocumentState
from daemon.contract.http.routes import Route

COMPARED_DOCUMENTS = 20
"""Number of a corpus's documents that are compared with the memory: evenly spread, including the first and the last."""
WAIT_S = 600.0
"""How long to wait for a document that is not committed yet."""


class CorpusCheck:
    def __init__(self, client: Client, id_prefix: str) -> None:
        self._client = client
        self._id_prefix = id_prefix

    def refuse(self, path: Path, documents: Sequence[dict[str, Any]]) -> str | None:
        """Returns why the corpus must not be added: one of its ids has a document with another title. None if it may be."""
        last = len(documents) - 1
        places = sorted({round(at * last / max(COMPARED_DOCUMENTS - 1, 1)) for at in range(COMPARED_DOCUMENTS)})
        for document in (documents[place] for place in places):
            uri = f"added:{f'{self._id_prefix}/' if self._id_prefix else ''}{document['idx']}"
            title = str(document.get("title", ""))
            there = self._title(uri)
            if there is not None and _plain(there) != _plain(title):
                return (
                    f'would replace other documents: {uri} is "{there[:80]}", and here it is "{title[:80]}"; nothing of this '
                    f"file was added. Add it with --id-prefix {path.stem} to keep both, or with --replace"
                )
        return None

    def _title(self, uri: str) -> str | None:
        """Returns the title of the document with this URI; None if there is no such document."""
        entry = self._entry(uri)
        if entry is not None and entry.get("state") == DocumentState.PENDING:
            self._client.call("POST", Route.WAIT, {"timeout_s": WAIT_S})
            entry = self._entry(uri)
        return None if entry is None else str(entry.get("title", ""))

    def _entry(self, uri: str) -> dict[str, Any] | None:
        answer = self._client.call("GET", Route.DOCUMENTS, params={"prefix": uri, "limit": 1})
        documents: list[dict[str, Any]] = answer.get("documents", [])
        return documents[0] if documents and documents[0].get("uri") == uri else None


def _plain(title: str) -> str:
    return " ".join(title.split())
