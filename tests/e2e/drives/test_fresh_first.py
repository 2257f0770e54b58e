"""Saved and added documents are found during a first index."""

import pytest

from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import until

pytestmark = pytest.mark.daemon

BULK_FILES = 400


def text(number: int) -> str:
    sentences = (f"Ledger {number} says that keeper {number}-{n} left the light at {n} o'clock." for n in range(40))
    return f"# Ledger {number}\n\n" + " ".join(sentences)


def test_saved_file_and_added_document_are_indexed_before_most_of_a_first_index(hippo: Hippo) -> None:
    daemon = hippo(parsing={"workers": 2})
    bulk = {daemon.write(f"old/{number % 20}/{number}.md", text(number)) for number in range(BULK_FILES)}
    daemon.start()
    until(lambda: daemon.status()["pending"] > BULK_FILES / 2 and daemon.status()["passages"], "the bulk is under way")
    saved = daemon.write("notes/today.md", "# Today\n\nPerpetua Gray bought the Otter Engine.\n")
    [added] = daemon.add({"id": "today", "text": "Leopold Strand sold the Heron Mill."})

    def states() -> dict[str, str]:
        return {uri: document["state"] for uri, document in daemon.documents().items()}

    until(lambda: states().get(saved) == states().get(added) == "indexed", "both are indexed", pause_s=0.01)
    now = states()
    committed = sum(now.get(uri) == "indexed" for uri in bulk)
    assert committed < BULK_FILES / 2, "most of what was there before still waits"
    for query, uri in (("Otter Engine", saved), ("Heron Mill", added)):
        assert any(passage["document"] == uri for passage in daemon.query(query, mode="bm25"))
