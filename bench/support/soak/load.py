"""The load of a soak: one thread changes, removes and queries documents in an order that the seed gives; other threads only
query."""

import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import httpx2

from bench.sections.faults.soak import Drive, made_up_question
from bench.support.soak.samples import Latencies, Sampler
from memory.openie.rules.extractor import RulesExtractor
from store.log.store_summary import encoder_of_store
from store.store import Store
from store.types import Batch
from tests.e2e.real_hippod import Daemon, write_config

ADDED = 60
"""Number of documents added over the socket, besides the files."""
LOOK_BACK_S = 45.0
"""Age in seconds of the states that `as_of` queries. `[store] keep_versions` is longer."""
BACKUPS = 2
PATIENCE_S = 900.0
GROWING: dict[str, float] = {"file": 10, "add": 4, "remove": 2, "query": 4}
ORDINARY: dict[str, float] = GROWING | {"as of": 2, "reload": 0.3, "backup": 0.2}
FAULTS: dict[str, float] = ORDINARY | {"kill": 0.5, "upgrade": 0.2}
"""Relative frequency of each operation, by phase. The first phase makes no `as_of` queries, because there are no earlier states
yet."""


def _past() -> str:
    return datetime.fromtimestamp(time.time() - LOOK_BACK_S, UTC).isoformat()


class Load:
    """Performs operations on the daemon. `errors` are unexpected answers and lost documents."""

    def __init__(self, daemon: Daemon, seed: int, files: int, sampler: Sampler, latencies: Latencies) -> None:
        self._daemon = daemon
        self._random = random.Random(seed)
        self.drive = Drive(daemon.drive, files, seed, slack=1)
        self._sampler = sampler
        self._latencies = latencies
        self._added: dict[str, str] = {}
        """URI of each added document, by id."""
        self._backups = 0
        self._down = threading.Event()
        self.done: Counter[str] = Counter()
        self.errors: list[str] = []

    def step(self, weights: Mapping[str, float]) -> None:
        """Performs the next operation, chosen by the seed."""
        kind = self._random.choices(list(weights), list(weights.values()))[0]
        self.done[kind] += 1
        {
            "file": self.drive.change,
            "add": self._add,
            "remove": self._remove,
            "query": lambda: self._ask(self._daemon.http, "query", self._random, {}),
            "as of": lambda: self._ask(self._daemon.http, "as of", self._random, {"as_of": _past()}),
            "reload": self._reload,
            "backup": self._backup,
            "kill": self._kill,
            "upgrade": self._upgrade,
        }[kind]()

    def fill(self) -> None:
        """Adds all documents of the pool."""
        while len(self._added) < ADDED:
            self._add()

    def _add(self) -> None:
        """Adds a document, or replaces one of the same id."""
        missing = [str(n) for n in range(ADDED) if str(n) not in self._added]
        id = missing[0] if missing else str(self._random.randrange(ADDED))
        [self._added[id]] = self._daemon.add({"id": id, "text": self.drive.text()})

    def _remove(self) -> None:
        """Removes an added document and adds it again, so that the number of documents stays the same."""
        id = self._random.choice(sorted(self._added))
        self._daemon.ask("DELETE", "/v1/documents", json={"uris": [self._added.pop(id)]})
        self._add()

    def _reload(self) -> None:
        triples = self._random.randrange(3, 8)
        write_config(self._daemon.config, self._daemon.sections | {"retrieval": {"top_triples": triples}})
        self._daemon.signal(signal.SIGHUP)

    def _backup(self) -> None:
        folder = self._daemon.home / "backups"
        self._backups += 1
        self._daemon.ask("POST", "/v1/backup", json={"directory": str(folder / f"{self._backups:06}")})
        for old in sorted(folder.iterdir())[:-BACKUPS]:
            shutil.rmtree(old)

    def _kill(self) -> None:
        with self._restarted():
            self._daemon.kill()
        self.check("after a kill")

    def _upgrade(self) -> None:
        """Restarts as after an upgrade: the store was written with an older reader and older rules."""
        with self._restarted():
            if (code := self._daemon.stop(PATIENCE_S)) != 0:
                self.errors.append(f"stop: exit code {code}")
            identity = encoder_of_store(self._daemon.store)
            assert identity is not None
            with Store(self._daemon.store, identity) as store:
                ids = store.passages_by_extraction(lambda _: True)
                texts = [text for id in ids if (text := store.passage(id)) is not None]
                older = tuple(replace(each, extractor="rules/1") for each in RulesExtractor().extract(texts))
                files = {key: {**at, "reader": 1} for key, at in store.positions.items() if "reader" in (at or ())}
                store.commit(Batch(extractions=older, positions=files))
        self.check("after an upgrade")

    @contextmanager
    def _restarted(self) -> Iterator[None]:
        """Starts the daemon again after the block, which stops it. Meanwhile, samples and failed queries do not count."""
        with self._sampler.running:
            self._down.set()
            yield
            self._daemon.launch().wait_ready(PATIENCE_S)
            self._sampler.life += 1
            self._down.clear()

    def check(self, when: str) -> None:
        """Compares the documents with the files and the added documents."""
        self._daemon.wait(PATIENCE_S)
        found = {uri for uri, each in self._daemon.documents().items() if each["state"] == "indexed"}
        expected = {path.as_uri() for path in self._daemon.drive.rglob("*.md")} | set(self._added.values())
        if found != expected:
            lost, extra = sorted(expected - found), sorted(found - expected)
            self.errors.append(f"{when}: lost {lost[:3]} ({len(lost)}), left {extra[:3]} ({len(extra)})")

    @contextmanager
    def clients(self, number: int, seed: int, pause_s: float) -> Iterator[None]:
        """Queries from `number` threads during the block."""
        ended = threading.Event()

        def run(client: int) -> None:
            chosen = random.Random(f"{seed}-{client}")
            transport = httpx2.HTTPTransport(uds=str(self._daemon.socket))
            with httpx2.Client(
                transport=transport, base_url="http://hippod", timeout=PATIENCE_S, trust_env=False
            ) as http:
                while not ended.wait(pause_s):
                    if not self._down.is_set():
                        mode = chosen.choice(("fused", "hipporag2", "dense", "bm25", None))
                        self._ask(http, "query", chosen, {"mode": mode, "explain": chosen.random() < 0.1})

        threads = [threading.Thread(target=run, args=(client,)) for client in range(number)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def _ask(self, http: httpx2.Client, kind: str, chosen: random.Random, more: Mapping[str, object]) -> None:
        life, began = self._sampler.life, time.perf_counter()
        try:
            answer = http.post("/v1/query", json={"query": made_up_question(chosen), "k": 5, **more})
            problem = "" if answer.status_code == 200 else f"{answer.status_code} {answer.text[:300]}"
        except httpx2.HTTPError as error:
            problem = repr(error)
        if not problem:
            self._latencies.add(kind, (time.perf_counter() - began) * 1000)
        elif not self._down.is_set() and self._sampler.life == life:
            self.errors.append(f"{kind}: {problem}")
