"""A process that changes a store endlessly, and the conditions after it is killed at any moment.

As a program it works on the store until it is killed: adds, edits, removals, compaction, folds, checkpoints, purges. It prints
one line for each acknowledged commit before the next begins.
"""

import json
import random
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from store.errors import IncompleteBatch
from store.export.json_lines import export_lines
from store.store import Store
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import complete, extract, open_store

ROOT = Path(__file__).parents[2]
Passages = list[tuple[str, str, None]]
"""Title and text of a document's passages, without given triples."""


def step(number: int, held: dict[str, Passages]) -> tuple[dict[str, Passages], list[str]]:
    """Returns change number `number` to the documents `held`: (new or edited documents, removed URIs). A pure function."""
    random_ = random.Random(number)
    changed: dict[str, Passages] = {}
    for _ in range(random_.randint(1, 3)):
        count = random_.randint(1, 3)
        changed[f"d{random_.randrange(12)}"] = [("T", f"text {random_.randrange(200)}", None) for _ in range(count)]
    removed = [uri for uri in sorted(held) if uri not in changed and random_.random() < 0.15]
    return changed, removed


def after(count: int) -> dict[str, Passages]:
    """Returns the documents after the first `count` changes."""
    held: dict[str, Passages] = {}
    for number in range(count):
        changed, removed = step(number, held)
        held |= changed
        for uri in removed:
            del held[uri]
    return held


def work(folder: str, first: int) -> None:
    store = open_store(Path(folder))
    upkeep = threading.Thread(target=tend, args=(store,), daemon=True)
    upkeep.start()
    held, number = after(first), first
    while True:
        changed, removed = step(number, held)
        while True:
            batch = replace(complete(store, changed, removed), positions={"n": number})
            try:
                store.commit(batch)
                break
            except IncompleteBatch:
                continue  # the concurrent purge deleted a text that the store had reported as known
        held |= changed
        for uri in removed:
            del held[uri]
        number += 1
        print(json.dumps(number), flush=True)


def tend(store: Store) -> None:
    while True:
        for job in (store.compact, store.fold, store.write_checkpoint, lambda: store.purge(timedelta(0))):
            job()


class Crashes:
    """Repeated kills of one store; `crash` raises AssertionError if a condition is violated."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.done = 0

    def crash(self, longest_s: float) -> None:
        """Lets a process work for a random time, kills it, and checks the store."""
        command = [sys.executable, "-m", "tests.crash.crashing", str(self.folder), str(self.done)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stderr is not None
            first = process.stdout.readline()
            if not first:
                raise AssertionError(f"it did not begin: {process.stderr.read()[-2000:]}")
            time.sleep(self.random.uniform(0, longest_s))
            ended = process.poll()
            process.kill()
            said = [first, *process.stdout.readlines()]
            if ended is not None:
                raise AssertionError(f"it ended by itself: {process.stderr.read()[-2000:]}")
        acknowledged = max(int(line) for line in said if line.endswith("\n"))
        with open_store(self.folder) as store:
            committed = int(store.positions["n"]) + 1
            # The last commit may not have been printed when the kill came.
            assert committed in (acknowledged, acknowledged + 1), (committed, acknowledged)
            difference = oracle.same(export_lines(store.snapshot()), oracle.export(after(committed), extract))
            assert difference is None, difference
            found = verify(store)
            assert found.problems == [], found.problems
            uris = [document.uri for document in store.documents()]
            assert uris == sorted(after(committed)), uris
        self.done = committed


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]))
