"""Documents that may cost much memory or time: a hub, equal titles, one passage in thousands of documents.

Compares two stores with equally many passages (`HIPPOD_BENCH_HUBS`, by default 20000) with four triples each. In the first
store, all passages differ. In the second store, all passages state one triple, have a triple about one phrase (a hub with an
edge per passage), contain one common word, and share two titles; half of the documents also contain one common passage. The
real daemon also follows a file of a million equal lines with each store. Every step reports its time and its own peak memory.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.support.growth.store import commit, open_store
from bench.support.hostile_vectors import in_letters
from bench.support.measuring import peak_mib, seconds
from bench.support.tables import table
from daemon.contract.http.routes import document_path
from store.types import Document, PassageRef, PassageText, passage_id
from tests.e2e.real_hippod import Daemon

COMMIT_PASSAGES = 500
EQUAL_LINES = 1_000_000
PATIENCE_S = 1800.0
MORE_MIB = 500
"""Maximum memory in MiB by which a step in the second store may exceed the same step in the first store."""

SHARED = PassageText(passage_id("Notice", "The notice everywhere."), "Notice", "The notice everywhere.")


def run(results: dict[str, Any]) -> str:
    count = int(os.environ.get("HIPPOD_BENCH_HUBS", "20000"))
    results["stores"] = stores = {name: _measured(name == "hubs", count) for name in ("plain", "hubs")}
    plain, hubs = stores.values()
    results["violations"] = [
        f"{step}: {figures['peak_mib'] - plain[step]['peak_mib']} MiB more among hubs than without, {MORE_MIB} are the most"
        for step, figures in hubs.items()
        if figures["peak_mib"] - plain[step]["peak_mib"] > MORE_MIB
    ]
    rows = [
        (step, *(f"{store[step]['s']}, {store[step]['peak_mib']:,}" for store in stores.values())) for step in plain
    ]
    return table((f"{count:,} passages: s, peak MiB", "plain", "hubs"), rows)


def _document(number: int, hubs: bool) -> tuple[Document, list[PassageText]]:
    name = f"thing {in_letters(number)}"
    other = f"thing {in_letters(number // 2 + 10**6)}"
    own = "hub" if hubs else f"part {in_letters(number)}"
    said = "everything" if hubs else f"statement {in_letters(number)}"
    title = f"Title {number % 2}" if hubs else f"Title {in_letters(number)}"
    text = f"{name} is held by {own}. {said} is the case. The word everywhere."
    triples = ((own, "holds", name), (said, "is", "the case"), (name, "near", other), (other, "far from", own))
    texts = [PassageText(passage_id(title, text), title, text)]
    refs = [PassageRef(texts[0].id, {}, triples)]
    if hubs and number % 2:
        texts.append(SHARED)
        refs.append(PassageRef(SHARED.id, {}, (("notice", "stands", "everywhere"),)))
    return Document(f"added:{number}", "bench", title=title, passages=tuple(refs)), texts


def _measured(hubs: bool, count: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="hippod-hubs-") as place:
        daemon = Daemon(Path(place, "home"), encoder={"backend": "hash"})
        _fill(daemon.store, hubs, count)
        daemon.http.timeout = PATIENCE_S
        found: dict[str, dict[str, float]] = {}
        try:
            for step, work in _steps(daemon, hubs, count).items():
                if daemon.process is not None:
                    Path(f"/proc/{daemon.process.pid}/clear_refs").write_text("5")
                took = seconds(work)
                found[step] = {"s": round(took, 2), "peak_mib": peak_mib(daemon.pid)}
                print("hubs" if hubs else "plain", step, found[step], flush=True)
        finally:
            daemon.close()
        return found


def _fill(folder: Path, hubs: bool, count: int) -> None:
    store, encoder = open_store(folder)
    for start in range(0, count, COMMIT_PASSAGES):
        made = [_document(number, hubs) for number in range(start, min(start + COMMIT_PASSAGES, count))]
        commit(store, encoder, [(document, text) for document, texts in made for text in texts])
    store.write_checkpoint()
    store.close()


def _steps(daemon: Daemon, hubs: bool, count: int) -> dict[str, Callable[[], object]]:
    """Returns the steps by name."""
    hub = "hub" if hubs else "part a"
    thing = f"thing {in_letters(count // 2)}"

    def query(mode: str, **options: Any) -> Callable[[], object]:
        body = {"query": f"What does the {hub} hold everywhere?", "mode": mode, **options}
        return lambda: daemon.ask("POST", "/v1/query", json=body)

    def show(key: str) -> Callable[[], object]:
        return lambda: daemon.ask("GET", document_path(key))

    def from_tables() -> None:
        assert daemon.stop() == 0
        for snapshot in daemon.store.glob("snapshot-*"):
            shutil.rmtree(snapshot)
        daemon.start()

    def lines() -> None:
        daemon.write("lines.txt", "A line of many.\n" * EQUAL_LINES)
        daemon.wait(PATIENCE_S)
        state = daemon.ask("GET", document_path(daemon.uri("lines.txt")))["document"]["state"]
        assert state == "indexed", state

    def add() -> None:
        daemon.add({"id": "one more", "text": f"{hub} holds one more. The word everywhere."})
        daemon.wait(PATIENCE_S)

    steps: dict[str, Callable[[], object]] = {"start": daemon.start}
    steps |= {f"query, {mode}": query(mode) for mode in ("dense", "bm25", "hipporag2", "hipporag", "fused")}
    return steps | {
        "query, fused, 1,000 passages": query("fused", k=1000),
        "query, fused, explained": query("fused", explain=True),
        "query, fused, 1,000 explained": query("fused", explain=True, k=1000),
        "neighbourhood of the hub": lambda: daemon.ask("POST", "/v1/graph", json={"phrase": hub, "nodes": 200}),
        "neighbourhood of a query": lambda: daemon.ask("POST", "/v1/graph", json={"query": hub, "nodes": 200}),
        "show the hub": show(hub),
        "show a neighbour of the hub": show(thing),
        "show the passage of half the documents": show(SHARED.id) if hubs else show(_document(1, False)[1][0].id),
        "show the triple of all passages": show(
            '["everything", "is", "the case"]' if hubs else '["statement a", "is", "the case"]'
        ),
        "look back, first commit": query("fused", as_of=1),
        "look back, last but ten": query("fused", as_of=max(1, count // COMMIT_PASSAGES - 10)),
        "add a passage about the hub": add,
        "a million equal lines": lines,
        "export": daemon.export,
        "verify": lambda: daemon.ask("POST", "/v1/verify"),
        "start from tables alone": from_tables,
    }
