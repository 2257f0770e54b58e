"""Random histories of a store, many interleaved in one store, and the conditions at the end of each history.

The cost of a history is mostly that of LanceDB for a commit, a purge or a start; the number of rows hardly matters. One store
therefore contains the histories of many *worlds* at once. A world is a few documents over a few texts and phrases that no other
world has, so worlds do not affect each other's edges. Each commit contains the next changes of some worlds; purges, starts and
faults affect all worlds. A script of such steps is data made from a seed. It can be repeated with some of its worlds and steps
only, which shortens a failure to a short history.

At the end of a script the store is verified (`store.verify`), and its export is compared with the oracle's, which loops and
dictionaries derive from each world's documents (`tests.store.oracle`): once in the present state and once after a start from
the tables alone. After a final purge the tables must contain only what is needed.
"""

import json
import random
import shutil
import tempfile
import time
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import cache, lru_cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import store.index.delta_csr as folding
import store.lance.checksums as checksums
import store.maintenance.compaction as compaction
import store.maintenance.retention as history
from store.errors import IncompleteBatch, StoreError
from store.export.json_lines import export_lines
from store.index.live_index import LiveIndex
from store.maintenance.erasure import Erasure
from store.store import Store
from store.types import EncoderIdentity, SynonymRule, passage_id
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import complete

DIM = 32
"""Large enough for phrases of different worlds to be far from each other."""

RULE = SynonymRule(oracle.THRESHOLD, variants=False)

URIS = "abc"
TEXTS = 5
PHRASES = [(start, end) for start in ("am", "bo") for end in ("x", "a", "bb", "ccc", "dd")]
EXTRACTORS = (None, "oracle", "another")
"""Extractor of a document's supplied triples: none, the local extractor, or another one."""
SCOPES = ("a", "bc", "ab")
"""Last letters of the URIs of each scope's documents."""
SHARE = 0.6
"""Share of the worlds that a commit changes."""

STEPS = 16
WEIGHTS = {"commit": 9, "purge": 6, "restart": 3, "save": 1, "compact": 1, "renew": 1, "look back": 1}
FATES = ("", "", "", "interrupted", "power", "spoiled", "disk full")
"""Faults during one slice of a purge, besides commits."""

SLICES = 14
"""Number of slices of a purge before which a step may happen."""


@cache
def vector(text):
    """Returns a unit vector that depends on the text; phrases that differ only in their end have close vectors.

    Their cosines are 0.9 and more, so that their sketches collide almost certainly (`store.index.synonyms.lsh`).
    """

    def noise(key):
        seed = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")
        return np.random.default_rng(seed).standard_normal(DIM)

    v = noise(text.rpartition("-")[0]) + 0.2 * noise(text)
    return (v / np.linalg.norm(v)).astype(np.float32)


def reading(version, title, text):
    """Returns the triples of a passage's extraction number `version`: different each time, sometimes none."""
    _, number, world = text.split()
    i = int(number) + 3 * version
    ring = [_phrase(world, 7 * i + k * (3 + len(title))) for k in range(5)]
    return [(ring[k], "rel" if k % 3 else "", ring[k + 1]) for k in range(i % 4)]


def _phrase(world, i):
    start, end = PHRASES[i % len(PHRASES)]
    return f"{start}-{world}-{end}"


Step = list[Any]
"""The name of a method of `Life` and its arguments, all JSON values."""
Script = list[Step]


def script(seed: int, worlds: int, steps: int = STEPS) -> Script:
    """Returns `steps` random steps over `worlds` worlds."""
    chosen = random.Random(seed)
    kinds = chosen.choices(list(WEIGHTS), list(WEIGHTS.values()), k=steps)
    return [["commit", _changes(chosen, worlds)], *(_step(chosen, kind, worlds) for kind in kinds)]


def _step(chosen, kind, worlds):
    if kind == "commit":
        return ["commit", _changes(chosen, worlds)]
    if kind == "restart":
        return ["restart", chosen.random() < 0.5]
    if kind == "look back":
        return ["look back", chosen.randrange(4)]
    if kind == "purge":
        slices = chosen.sample(range(SLICES), chosen.choice((0, 1, 1, 2, 3)))
        return [
            "purge",
            {
                "back": chosen.choice((0, 0, 0, 0, 1, 2, 4)),
                "beside": {str(each): _changes(chosen, worlds) for each in sorted(slices)},
                "prepared": chosen.random() < 0.5,
                "fate": chosen.choice(FATES),
                "at": chosen.randrange(SLICES),
                "fold": chosen.random() < 0.5,
            },
        ]
    return [kind]


def _changes(chosen, worlds):
    """Returns, by world: new or edited documents, removed documents, and a text to extract again."""
    return {f"u{n}": _change(chosen, f"u{n}") for n in range(worlds) if chosen.random() < SHARE}


def _change(chosen, world):
    uris = chosen.sample(URIS, chosen.choice((0, 1, 1, 1, 2)))
    return {
        "documents": {uri: [_passage(chosen, world) for _ in range(chosen.choice((0, 1, 1, 2)))] for uri in uris},
        "gone": [uri for uri in URIS if uri not in uris and chosen.random() < 0.35],
        "again": chosen.randrange(TEXTS) if chosen.random() < 0.3 else None,
    }


def _passage(chosen, world):
    given, extractor = None, None
    if chosen.random() < 0.4:
        given = [
            [
                _phrase(world, chosen.randrange(10)),
                chosen.choice(("is", "has", "")),
                _phrase(world, chosen.randrange(10)),
            ]
            for _ in range(chosen.choice((0, 0, 1, 2)))
        ]
        extractor = chosen.choice(EXTRACTORS)
    return [chosen.choice(("T", "")), f"text {chosen.randrange(TEXTS)} {world}", given, extractor]


def of_worlds(steps, worlds):
    """Returns the script limited to some of its worlds."""

    def only(changes):
        return {world: change for world, change in changes.items() if world in worlds}

    def of(step):
        if step[0] == "commit":
            return ["commit", only(step[1])]
        if step[0] == "purge":
            return ["purge", step[1] | {"beside": {n: only(each) for n, each in step[1]["beside"].items()}}]
        return step

    return [of(step) for step in steps]


class Wrong(Exception):
    """A condition is violated."""


class Life:
    """A store on which a script runs, and its expected content."""

    def __init__(self, folder):
        self.folder = folder
        self.documents = {}
        self.versions = {}
        self.known = {}
        self.purges = 0
        self.store = self._open()

    def _open(self):
        return Store(self.folder, EncoderIdentity("histories", DIM), RULE)

    def run(self, steps):
        for step in steps:
            getattr(self, "_" + step[0].replace(" ", "_"))(*step[1:])
        self._end()
        self.store.close()

    def extract(self, title, text):
        return reading(self.versions.get(text, 0), title, text)

    def _complete(self, changes):
        documents, gone, again = {}, [], []
        for world, change in changes.items():
            for uri, passages in change["documents"].items():
                documents[f"{world}/{uri}"] = [
                    (title, text, given if given is None else tuple(map(tuple, given)), extractor)
                    for title, text, given, extractor in passages
                ]
            gone += [f"{world}/{uri}" for uri in change["gone"]]
            if change["again"] is not None:
                again.append(f"text {change['again']} {world}")
        for text in again:
            self.versions[text] = self.versions.get(text, 0) + 1
        stored = [
            (title, text)
            for text in again
            for title in ("T", "")
            if self.store.passage(passage_id(title, text)) is not None
        ]
        return documents, gone, complete(self.store, documents, gone, self.extract, stored, vector)

    def _commit(self, changes, prepared=None):
        versions = dict(self.versions)
        documents, gone, batch = prepared or self._complete(changes)
        try:
            self.store.commit(batch)
        except IncompleteBatch:
            # A purge deleted a text that the store had reported as known.
            self.versions = versions
            documents, gone, batch = self._complete(changes)
            self.store.commit(batch)
        self._committed(documents, gone)

    def _committed(self, documents, gone):
        self.documents |= documents
        for uri in gone:
            self.documents.pop(uri, None)
        self.known[self.store.snapshot().commit] = dict(self.documents), dict(self.versions)

    def _restart(self, rebuilt):
        self.store.close()
        for snapshot in self.folder.glob("snapshot-*") if rebuilt else ():
            shutil.rmtree(snapshot)
        self.store = self._open()
        self.known[self.store.snapshot().commit] = dict(self.documents), dict(self.versions)

    def _save(self):
        self.store.write_checkpoint()

    def _compact(self):
        self.store.compact()

    def _renew(self):
        self.store.rebuild_index(force=True)

    def _look_back(self, back):
        commit = self.store.snapshot().commit - back
        if commit < max(self.store.horizon, 1):
            try:
                self.store.snapshot_at(commit)
            except StoreError:
                return
            raise Wrong(f"commit {commit} is shown, and kept are those from {self.store.horizon} on")
        self._check_commit(commit)

    def _check_commit(self, commit):
        if at := max((seq for seq in self.known if seq <= commit), default=0):
            documents, versions = self.known[at]
            when, memory = f"at commit {commit}", self.store.document_snapshot_at(commit)
            self._compare(memory.snapshot, documents, versions, when)
            if sorted(memory.documents) != sorted(documents):
                raise Wrong(f"{when}: the documents are {sorted(memory.documents)}, expected {sorted(documents)}")

    def _purge(self, how):
        self.purges += 1
        beside, prepared = dict(how["beside"]), {}
        seen: list[str] = []
        delete, write_mark = Erasure._delete, self.store._commits._write_mark
        if how["prepared"] and beside:
            # A batch that was completed before the purge and is committed during it.
            first = next(iter(beside))
            prepared[first] = self._complete(_without_readings(beside[first]))

        def before(erasure, *given):
            number = str(len(seen))
            seen.append(number)
            if changes := beside.pop(number, None):
                self._commit(_without_readings(changes) if number in prepared else changes, prepared.get(number))
            if int(number) == how["at"]:
                if how["fold"]:
                    self.store.write_checkpoint()
                if self._befalls(how["fate"]):
                    # A batch completed before another commit may lack an extraction that this commit made necessary. In hippod
                    # this cannot happen: it completes and commits one batch after another (`daemon.pipeline.commit.committer`).
                    prepared.clear()
            return delete(erasure, *given)

        def cut(*given):
            if len(seen) > how["at"]:
                raise KeyboardInterrupt
            write_mark(*given)

        with ExitStack() as patches:
            patches.enter_context(mock.patch.object(Erasure, "_delete", before))
            if how["fate"] == "power":
                patches.enter_context(mock.patch.object(self.store._commits, "_write_mark", cut))
                patches.enter_context(mock.patch.object(self.store._commits, "_undo", lambda: None))
            try:
                self.store.purge(timedelta(seconds=time.time() - self._moment(how["back"])))
            except KeyboardInterrupt:
                if how["fate"] == "power":
                    self._restart(rebuilt=how["fold"])
        if how["back"]:
            self._look_back(how["back"])

    def _moment(self, back):
        """Returns a time for which the horizon is `back` commits before the last commit."""
        times = list(self.store._commits.times.values())[-1 - back :]
        return times[0] if len(times) > 1 and times[0] < times[1] else time.time()

    def _befalls(self, fate):
        """Causes the fault; returns whether something was committed."""
        if fate == "interrupted":
            raise KeyboardInterrupt
        if fate == "spoiled":
            with mock.patch.object(LiveIndex, "apply", half):
                self._commit({"u0": {"documents": {"s": [["T", "text 1 u0", None, None]]}, "gone": [], "again": None}})
            return True
        if fate == "disk full":
            _, _, batch = self._complete(
                {"u0": {"documents": {"s": [["T", "text 2 u0", None, None]]}, "gone": [], "again": None}}
            )
            with mock.patch.object(self.store._commits, "append", side_effect=OSError("No space left on device")):
                try:
                    self.store.commit(batch)
                except OSError:
                    return False
            raise Wrong("a commit stood without its row in the log")
        return False

    def _end(self):
        self._check("at the end")
        for commit in range(max(self.store.horizon, 1), self.store.snapshot().commit):
            self._check_commit(commit)
        if self.purges % 2:
            self.store.purge(timedelta(0))
            self._nothing_else()
            self._check("after a purge of all")
        self._restart(rebuilt=True)
        self._compare(self.store.snapshot(), self.documents, self.versions, "after a start from the tables alone")

    def _check(self, when):
        if problems := verify(self.store).problems:
            raise Wrong(f"{when}: {problems}")
        self._compare(self.store.snapshot(), self.documents, self.versions, when)
        if (uris := [document.uri for document in self.store.documents()]) != sorted(self.documents):
            raise Wrong(f"{when}: the documents are {uris}, expected {sorted(self.documents)}")
        for letters in SCOPES:
            scope = self.store.scoped(letters, lambda document, letters=letters: document.uri[-1] in letters)
            documents = {uri: each for uri, each in self.documents.items() if uri[-1] in letters}
            self._compare(scope.snapshot, documents, self.versions, f"{when}, in the scope {letters}")
        positions = set(self.store.positions)
        if positions != set(self.documents):
            raise Wrong(f"{when}: positions of {sorted(positions ^ set(self.documents))}")

    def _nothing_else(self):
        """Asserts that the tables contain only what is needed."""
        snapshot, kept = self.store.snapshot(), self.store._tables
        expected = {
            "documents": len(self.documents),
            "passages": snapshot.living_passages,
            "synonyms": snapshot.edges["synonym"],
        }
        rows = {name: kept.rows(name) for name in expected}
        if rows != expected:
            raise Wrong(f"after a purge of all the tables have {rows} rows, expected {expected}")
        if kept.rows("extractions") > snapshot.living_passages:
            raise Wrong(f"there are {kept.rows('extractions')} readings of {snapshot.living_passages} passages")

    def _compare(self, snapshot, documents, versions, when):
        expected: dict[tuple[object, ...], float] = {}
        for uris in _by_world(documents).values():
            expected |= _export(uris, tuple((text, versions.get(text, 0)) for text in _texts(uris)))
        got = {}
        for line in export_lines(snapshot):
            said = json.loads(line)
            weight = said.pop("weight", 0.0)
            got[tuple(said.values())] = weight
        if missing := sorted(expected.keys() - got.keys()):
            raise Wrong(f"{when}: not exported: {missing[:5]}")
        if extra := sorted(got.keys() - expected.keys()):
            raise Wrong(f"{when}: exported and not expected: {extra[:5]}")
        if other := [key for key, weight in expected.items() if abs(got[key] - weight) > 1e-6]:
            raise Wrong(f"{when}: of another weight: {other[:5]}")


def _by_world(documents):
    worlds: dict[str, list[tuple[str, tuple[Any, ...]]]] = {}
    for uri, passages in sorted(documents.items()):
        worlds.setdefault(uri.partition("/")[0], []).append((uri, tuple(passages)))
    return {world: tuple(uris) for world, uris in worlds.items()}


def _texts(uris):
    return sorted({text for _, passages in uris for _, text, *_ in passages})


@lru_cache(2_000)
def _export(uris, versions):
    """Returns {line without its weight: weight}."""
    read = dict(versions)
    lines = oracle.export(dict(uris), lambda title, text: reading(read[text], title, text), vector, by_texts=False)
    return {tuple(value for key, value in line.items() if key != "weight"): line.get("weight", 0.0) for line in lines}


def _without_readings(changes):
    return {world: change | {"again": None} for world, change in changes.items()}


def half(index, delta):
    index.add_passages(delta.passages)
    raise BufferError("a fault of ours")


@contextmanager
def small_sizes(slice_rows):
    """Applies the folds, merges and slices of a large memory to a small one; disables syncing."""
    with ExitStack() as patches:
        for module, name, value in (
            (folding, "FOLD_MIN_ENTRIES", 200),
            (compaction, "FLUSH_COMMITS", 3),
            (compaction, "MANY_FRAGMENTS", 4),
            (history, "PURGE_SLICE_ROWS", slice_rows),
            (checksums, "sync", lambda path: None),
        ):
            patches.enter_context(mock.patch.object(module, name, value))
        yield


def failure(steps: Script) -> str | None:
    """Runs a script in a separate folder; returns the violated condition, or None."""
    with small_sizes(2 + len(_worlds(steps))), tempfile.TemporaryDirectory(prefix="hippod-history-") as folder:
        life = None
        try:
            life = Life(Path(folder))
            life.run(steps)
        except Exception as error:
            if life is not None:
                life.store.close()
            return f"{type(error).__name__}: {str(error)[:2000]}"
    return None


def _worlds(steps):
    return sorted({world for step in steps if step[0] == "commit" for world in step[1]})


def shortest(steps: Script, most_runs: int = 100) -> Script:
    """Shortens a failing script to fewer worlds, steps and changes, within `most_runs` runs."""
    runs = 0

    def fewer(items, made):
        """Returns the items that `made(items)` needs to fail: removes halves, then ever smaller pieces."""
        nonlocal runs
        size, start = -(-len(items) // 2), 0
        while size and runs < most_runs:
            rest = items[:start] + items[start + size :]
            runs += 1
            if failure(made(rest)):
                items = rest
            else:
                start += size
            if start >= len(items):
                size, start = size // 2, 0
        return items

    def one_purge(i, how, beside):
        return [*steps[:i], ["purge", how | {"beside": dict(beside)}], *steps[i + 1 :]]

    steps = of_worlds(steps, fewer(_worlds(steps), lambda worlds: of_worlds(steps, worlds)))
    steps = fewer(steps, list)
    for i, step in enumerate(steps):
        if step[0] == "purge":
            made = partial(one_purge, i, step[1])
            steps = made(fewer(list(step[1]["beside"].items()), made))
    return steps
