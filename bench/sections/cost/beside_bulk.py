"""The time until a new text is found during bulk work: during a first index, and during checkouts in the followed folder.

Uses the real daemon with the packaged encoder. Each time runs from closing a file, or accepting a document, until a query in
the default mode finds it. A text that is not found within the time limit counts as that limit.
"""

import json
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.support.data import CORPUS, skipped
from bench.support.followed_folder import text_about, write_corpus
from bench.support.tables import percentiles, table
from tests.e2e.real_hippod import Daemon

SAVES = 40
"""Number of saves of each kind during each bulk."""
UNDER_WAY = 200
"""Number of passages that the first index has committed before the first file is saved."""
BETWEEN_S = 0.1
PATIENCE_S = 45.0
LOST = 2
"""Number of texts not found within `PATIENCE_S` after which a kind of save is no longer tried."""
ASK_EVERY_S = 0.025
CHECKED_OUT, FOLDERS = 500, 50
SAVES_A_CHECKOUT = 4
CHECKOUT_PATIENCE_S = 300.0


def run(results: dict[str, Any]) -> str:
    if not CORPUS.exists():
        return skipped("The section", CORPUS)
    folder = Path(tempfile.mkdtemp(prefix="hippod-bench-"))
    try:
        return "\n\n".join(
            [_beside_first_index(folder / "index", results), _beside_checkouts(folder / "checkout", results)]
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _daemon(home: Path) -> Daemon:
    return Daemon(home, encoder={"backend": "sentence-transformers"})


def _beside_first_index(home: Path, results: dict[str, Any]) -> str:
    daemon = _daemon(home)
    write_corpus(daemon, json.loads(CORPUS.read_text("utf-8")))
    took: dict[str, list[float]] = {"saved": [], "added": []}
    pending: list[int] = []
    try:
        daemon.start()
        while daemon.status()["passages"] < UNDER_WAY:
            time.sleep(BETWEEN_S)
        for number in range(2 * SAVES):
            kind = ("saved", "added")[number % 2]
            if sum(value >= PATIENCE_S for value in took[kind]) < LOST:
                took[kind].append(_found_after(daemon, number, kind))
                pending.append(daemon.status()["pending"])
            time.sleep(BETWEEN_S)
    finally:
        daemon.close()
        shutil.rmtree(daemon.home, ignore_errors=True)
    results["beside_first_index"] = {kind: percentiles(values) for kind, values in took.items()} | {"pending": pending}
    rows = [(f"{kind} → found", *_row(values)) for kind, values in took.items()]
    return table((f"beside a first index, {min(pending)}–{max(pending)} pending", "p50 s", "p95 s", "max s", "n"), rows)


def _beside_checkouts(home: Path, results: dict[str, Any]) -> str:
    """Checks out each branch once; the branches have different texts in the same `CHECKED_OUT` files.

    After each checkout, the first of `SAVES_A_CHECKOUT` files is saved at once, and the other files at random times during
    indexing.
    """
    daemon = _daemon(home)
    git = _Repository(daemon.drive)
    corpus = json.loads(CORPUS.read_text("utf-8"))
    for branch in range(SAVES // SAVES_A_CHECKOUT, -1, -1):
        git.branch(f"b{branch}", corpus[branch * CHECKED_OUT : (branch + 1) * CHECKED_OUT])
    at_once: list[float] = []
    meanwhile: list[float] = []
    pending: list[int] = []
    chance = random.Random(3)
    try:
        daemon.start().wait(CHECKOUT_PATIENCE_S)
        for number in range(SAVES):
            of_checkout = number % SAVES_A_CHECKOUT
            if of_checkout == 0:
                daemon.wait(CHECKOUT_PATIENCE_S)
                git.run("checkout", "--quiet", f"b{number // SAVES_A_CHECKOUT + 1}")
            else:
                time.sleep(chance.uniform(0.0, 2.0))
            (meanwhile if of_checkout else at_once).append(_found_after(daemon, number, "saved"))
            pending.append(daemon.status()["pending"])
    finally:
        daemon.close()
        shutil.rmtree(daemon.home, ignore_errors=True)
    named = {"at_once": at_once, "meanwhile": meanwhile, "all": at_once + meanwhile}
    results["beside_checkouts"] = {name: percentiles(each) for name, each in named.items()} | {"pending": pending}
    rows = [
        ("saved when the checkout ends → found", *_row(at_once)),
        ("saved while its files are read → found", *_row(meanwhile)),
        ("both", *_row(at_once + meanwhile)),
    ]
    head = f"beside checkouts of {CHECKED_OUT} files in {FOLDERS} folders, {min(pending)}–{max(pending)} pending after"
    return table((head, "p50 s", "p95 s", "max s", "n"), rows)


class _Repository:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.run("init", "--quiet")

    def run(self, *arguments: str) -> None:
        subprocess.run(
            ["git", "-C", str(self._folder), "-c", "user.name=bench", "-c", "user.email=bench@localhost", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def branch(self, name: str, documents: list[dict[str, Any]]) -> None:
        self.run("checkout", "--quiet", "-B", name)
        for at, document in enumerate(documents):
            file = self._folder / f"{at % FOLDERS:02}" / f"{at}.md"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"# {document['title']}\n\n{document['text']}\n", "utf-8")
        self.run("add", "--all")
        self.run("commit", "--quiet", "--message", name)


def _found_after(daemon: Daemon, number: int, kind: str) -> float:
    """Saves or adds a text, and returns the seconds until a query finds it."""
    wanted = text_about(number, "first")
    began = time.perf_counter()
    if kind == "saved":
        uri = daemon.write(f"bench/{number}.md", wanted)
    else:
        uri = f"added:beside-{number}"
        daemon.add({"id": uri.removeprefix("added:"), "text": wanted})
    query = wanted.split("\n\n")[1].split(".")[0]
    while (seconds := time.perf_counter() - began) < PATIENCE_S:
        if any(passage["document"] == uri for passage in daemon.query(query, mode=None, k=10)):
            return time.perf_counter() - began
        time.sleep(ASK_EVERY_S)
    return seconds


def _row(values: list[float]) -> tuple[str, ...]:
    found = percentiles(values)
    return *(f"{found[key]:.2f}" for key in ("p50", "p95", "max")), str(len(values))
