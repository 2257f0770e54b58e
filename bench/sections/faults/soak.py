"""As many changes as in months of use: clients query while files are added, edited, renamed and deleted. The changes are
divided into ten parts.

After each part everything is committed and purged (`[store] keep_versions` is a second), and the daemon's resources are
counted: resident memory, descriptors, threads, children. The number of files stays about the same, so growth is a leak.
`HIPPOD_BENCH_SOAK` is the number of changes (5,000, with twice as many queries); `HIPPOD_BENCH_SOAK_ENCODER` is "hash"
(default) or "sentence-transformers".
"""

import os
import random
import re
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil

from bench.support.measuring import MIB, mapped_files, resident_bytes
from bench.support.tables import table
from tests.e2e.real_hippod import Daemon

CHANGES = 5_000
CLIENTS = 32
PARTS = 10
FILES = 300
SEED = 7
PATIENCE_S = 1_800.0
SETTLE_S = 12.0
"""Seconds of rest; more than the 10 s for which Lance keeps an idle thread."""
QUIET = re.compile(r'"level": "(debug|info)"|"event": "document_failed".*"reason": "gone"')
"""Log lines that are no errors. A file may be deleted before it is parsed, and is then forgotten."""

SYLLABLES = [
    "ba",
    "den",
    "kor",
    "mil",
    "fa",
    "rus",
    "tel",
    "vin",
    "ho",
    "lak",
    "sun",
    "per",
    "gra",
    "mo",
    "dir",
    "nes",
    "wol",
    "tar",
    "pim",
    "sed",
]
DEEDS = ("built", "repaired", "painted", "sold", "described", "moved", "founded", "measured")
THINGS = ("a bridge", "a mill", "a clock", "a school", "a harbour", "a library", "an orchard", "a lantern")


GROWTH_MOST = 0.05
"""Maximum growth of resident memory from the end of the first part to the end of the last part."""
SETTLED_AT = 5_000
"""Minimum number of changes for checking memory; with fewer, the daemon still allocates memory after the first part."""
DESCRIPTORS_APART = 2
"""Allowed difference between counts of descriptors, because a count may include a briefly open file."""


@dataclass(frozen=True)
class Held:
    """The daemon's resources at a quiet moment. `rss` counts the daemon alone, in bytes; `all_rss` also counts its children."""

    rss: int
    all_rss: int
    descriptors: int
    """Number of open descriptors, except those counted in `mapped`."""
    mapped: int
    """Number of open checkpoint files; each needs a descriptor while it is mapped."""
    threads: int
    children: int
    documents: int
    passages: int


@dataclass
class Soak:
    """The observations of a run. `held`: resources before the first part and after each part. `errors`: unexpected answers."""

    queries: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    longest_s: float = 0.0

    @property
    def growth(self) -> float:
        """Relative growth of resident memory from the end of the first part to the end."""
        return self.held[-1].rss / self.held[1].rss - 1


def violations(found: Soak) -> list[str]:
    """Returns the violated conditions of a soak, for any length and machine."""
    broken = []
    if found.errors:
        broken.append(f"{len(found.errors):,} errors")
    if found.changes.total() >= SETTLED_AT and found.growth > GROWTH_MOST:
        broken.append(f"resident memory grew by {found.growth:.1%} after the first part, more than {GROWTH_MOST:.0%}")
    counts = [held.descriptors for held in found.held[1:]]
    if any(abs(count - counts[0]) > DESCRIPTORS_APART for count in counts):
        broken.append(f"open descriptors did not stay the same after the first part: {counts}")
    return broken


class Drive:
    """The files. All kinds of changes are about equally frequent. The number of files stays within `files` ± `slack`."""

    def __init__(self, folder: Path, files: int, seed: int, slack: int = 10) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._names: list[str] = []
        self.files = files
        self._slack = slack
        self._made = 0
        for _ in range(files):
            self._add()

    def change(self) -> str:
        kind = self._random.choice(("add", "edit", "edit", "rename", "delete"))
        if (kind == "add" and len(self._names) > self.files + self._slack) or (
            kind == "delete" and len(self._names) < self.files - self._slack
        ):
            kind = "delete" if kind == "add" else "add"
        {"add": self._add, "edit": self._edit, "rename": self._rename, "delete": self._delete}[kind]()
        return kind

    def __len__(self) -> int:
        return len(self._names)

    def _name(self) -> str:
        return _made_up_name(self._random)

    def text(self) -> str:
        facts = [
            f"{self._name()} {self._name()} {self._random.choice(DEEDS)} {self._random.choice(THINGS)} in {self._name()}."
            for _ in range(self._random.randint(3, 12))
        ]
        return (
            f"# {self._name()}\n\n" + "\n\n".join(" ".join(facts[at : at + 5]) for at in range(0, len(facts), 5)) + "\n"
        )

    def _pick(self) -> str:
        return self._names[self._random.randrange(len(self._names))]

    def _add(self) -> None:
        self._made += 1
        name = f"{self._made % 20}/{self._made}.md"
        (self._folder / name).parent.mkdir(exist_ok=True)
        (self._folder / name).write_text(self.text())
        self._names.append(name)

    def _edit(self) -> None:
        (self._folder / self._pick()).write_text(self.text())

    def _rename(self) -> None:
        old = self._pick()
        self._made += 1
        new = f"{self._made % 20}/{self._made}.md"
        (self._folder / new).parent.mkdir(exist_ok=True)
        (self._folder / old).rename(self._folder / new)
        self._names[self._names.index(old)] = new

    def _delete(self) -> None:
        gone = self._pick()
        (self._folder / gone).unlink()
        self._names.remove(gone)


def made_up_question(chosen: random.Random) -> str:
    """Returns a question that some file may answer. Each thread has its own generator, so that a seed repeats a run."""
    return f"Who {chosen.choice(DEEDS)} {chosen.choice(THINGS)} in {_made_up_name(chosen)}?"


def _made_up_name(chosen: random.Random) -> str:
    return "".join(chosen.choices(SYLLABLES, k=3)).capitalize()


def soak(home: Path, changes: int, queries: int, files: int = FILES, encoder: str = "hash", parts: int = PARTS) -> Soak:
    """Makes `changes` changes while `CLIENTS` clients send `queries` queries, in `parts` parts with a rest after each."""
    found = Soak()
    daemon = Daemon(
        home,
        encoder={"backend": encoder},
        store={"path": str(home / "store"), "keep_versions": "1s"},
        schedule={"rescan": "30s", "compact": "2s", "snapshot": "5s", "retry": "1s"},
        api={"concurrent_queries": 2 * CLIENTS},
    )
    try:
        drive = Drive(daemon.drive, files, SEED)
        daemon.http.timeout = PATIENCE_S
        daemon.start()
        with clients(daemon, found) as ask:
            found.held.append(_rested(daemon))
            for _ in range(parts):
                wait_for_answers = ask(queries // parts)
                for _ in range(changes // parts):
                    found.changes[drive.change()] += 1
                    time.sleep(0.001)
                wait_for_answers()
                found.held.append(_rested(daemon))
        status = daemon.status()
        if status["failed"]:
            found.errors.append(f"{status['failed']} documents failed")
        found.errors.extend(f"log: {line[-2000:]}" for line in daemon.log_text().splitlines() if not QUIET.search(line))
        if daemon.stop(PATIENCE_S) != 0:
            found.errors.append("it did not stop cleanly")
    finally:
        daemon.close()
    return found


def _rested(daemon: Daemon) -> Held:
    """Returns the resources after everything is committed, and after enough time for two maintenance runs."""
    daemon.wait(PATIENCE_S)
    time.sleep(SETTLE_S)
    return look(daemon)


@contextmanager
def clients(daemon: Daemon, found: Soak) -> Iterator[Any]:
    """Yields a function that starts queries by all clients and returns another function, which waits for the last query."""
    lock = threading.Lock()
    modes = ("fused", "hipporag2", "dense", "bm25", "query-to-node", None)
    transport = httpx2.HTTPTransport(uds=str(daemon.socket), limits=httpx2.Limits(max_connections=CLIENTS))
    with httpx2.Client(transport=transport, base_url="http://hippod", timeout=PATIENCE_S, trust_env=False) as http:

        def one(number: int, left: Iterator[int]) -> None:
            chosen = random.Random(number)
            while True:
                with lock:
                    if next(left, None) is None:
                        return
                body = {
                    "query": made_up_question(chosen),
                    "k": 5,
                    "mode": chosen.choice(modes),
                    "explain": chosen.random() < 0.1,
                }
                began = time.perf_counter()
                try:
                    answer = http.post("/v1/query", json=body)
                    problem = "" if answer.status_code == 200 else f"{answer.status_code} {answer.text[:300]}"
                except httpx2.HTTPError as error:
                    problem = repr(error)
                took = time.perf_counter() - began
                with lock:
                    found.queries += 1
                    found.longest_s = max(found.longest_s, took)
                    if problem:
                        found.errors.append(f"query: {problem}")

        def ask(count: int) -> Any:
            left = iter(range(count))
            threads = [threading.Thread(target=one, args=(number, left)) for number in range(CLIENTS)]
            for thread in threads:
                thread.start()

            def wait_for_answers() -> None:
                for thread in threads:
                    thread.join()

            return wait_for_answers

        yield ask


def look(daemon: Daemon) -> Held:
    """Returns the daemon's present resources; its own memory is the minimum of several samples."""
    assert daemon.process is not None
    process = psutil.Process(daemon.process.pid)
    status = daemon.status()
    looks = []
    for _ in range(10):
        rss, all_rss = resident_bytes(process)
        looks.append(
            Held(
                rss=rss,
                all_rss=all_rss,
                descriptors=process.num_fds() - (mapped := mapped_files(process.pid)),
                mapped=mapped,
                threads=process.num_threads(),
                children=len(process.children(recursive=True)),
                documents=status["documents"],
                passages=status["passages"],
            )
        )
        time.sleep(0.1)
    return min(looks, key=lambda each: (each.descriptors, each.rss))


def run(results: dict[str, Any]) -> str:
    changes = int(os.environ.get("HIPPOD_BENCH_SOAK", str(CHANGES)))
    encoder = os.environ.get("HIPPOD_BENCH_SOAK_ENCODER", "hash")
    home = Path(tempfile.mkdtemp(prefix="hippod-bench-"))
    began = time.perf_counter()
    try:
        found = soak(home, changes, 2 * changes, encoder=encoder)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    results["soak"] = {
        "encoder": encoder,
        "changes": dict(found.changes),
        "queries": found.queries,
        "clients": CLIENTS,
        "errors": found.errors,
        "growth": round(found.growth, 4),
        "longest_query_s": round(found.longest_s, 3),
        "took_s": round(time.perf_counter() - began, 1),
        "held": [asdict(each) for each in found.held],
    }
    results["violations"] = violations(found)
    heads = (
        "part",
        "documents",
        "passages",
        "resident, MiB",
        "with children",
        "descriptors",
        "mapped",
        "threads",
        "children",
    )
    rows = [
        (
            part,
            *(held.documents, held.passages, f"{held.rss / MIB:.0f}", f"{held.all_rss / MIB:.0f}"),
            *(held.descriptors, held.mapped, held.threads, held.children),
        )
        for part, held in enumerate(found.held)
    ]
    shown = "".join(f"\n- {error}" for error in found.errors[:20])
    return (
        f"{found.queries:,} queries of {CLIENTS} clients, {found.changes.total():,} changes ({encoder}): "
        f"{len(found.errors)} errors; memory at the end against that after the first part: {found.growth:+.1%}; "
        f"longest query {found.longest_s:.2f} s\n\n{table(heads, rows)}{shown}"
    )
