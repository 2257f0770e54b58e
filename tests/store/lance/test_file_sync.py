"""Every file of a commit is synced before the commit's row in the log, and the log's files before the acknowledgement."""

from datetime import timedelta
from pathlib import Path

import pytest

import store.lance.file_sync
from store.lance.layout import VERSION_HINT
from store.store import Store
from store.types import EncoderIdentity
from tests.store import oracle
from tests.store.test_order_independence import complete

FOLDERS = ("data", "_deletions", "_transactions", "_versions")


class Flushed:
    """Records the synced paths in order, and syncs them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[Path] = []
        self.listed: list[Path] = []
        fsync, names = store.lance.file_sync._fsync, store.lance.file_sync._names
        monkeypatch.setattr(store.lance.file_sync, "_fsync", lambda path: (self.paths.append(path), fsync(path)))
        monkeypatch.setattr(store.lance.file_sync, "_names", lambda path: (self.listed.append(path), names(path))[1])


def files(folder: Path) -> set[Path]:
    """Returns the files of all tables, and their folders."""
    found = {path for table in folder.glob("*.lance") for name in FOLDERS for path in (table / name).glob("*")}
    return {path for path in found if path.name != VERSION_HINT}


def test_whatever_a_commit_wrote_was_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = Flushed(monkeypatch)
    with Store(tmp_path / "store", EncoderIdentity("oracle", oracle.DIM)) as memory:

        def commit(uri: str) -> None:
            texts = {uri: [("T", f"text {uri}", (("am", "is", uri[-1]), ("bo", "of", uri[-2])))]}
            memory.commit(complete(memory, texts, []))

        for step in range(12):
            before = files(memory.folder)
            flushed.paths.clear()
            flushed.listed.clear()
            if step == 8:
                memory.compact(2, timedelta(0))
            else:
                commit(f"file:///{step % 7}{step % 5}")
            came = files(memory.folder) - before
            assert came and came <= set(flushed.paths)
            assert {path.parent for path in came} <= set(flushed.paths)
            # With the commit's files, and again with the log.
            assert flushed.paths.count(memory.folder / "checksums") >= 2
            # The log comes last, except that a merge syncs it before deleting its old rows.
            tables = [path for path in flushed.paths if path.name != "checksums"]
            log = [path.is_relative_to(memory.folder / "commits.lance") for path in tables]
            assert step == 8 or log == sorted(log)
            if step in (3, 4, 5, 6, 7, 11):
                assert not flushed.listed  # only appends since


def test_a_second_call_flushes_what_the_first_has_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(tmp_path / "store", EncoderIdentity("oracle", oracle.DIM)) as memory:
        for name in ("a", "b"):
            memory.commit(complete(memory, {f"file:///{name}": [("T", f"text {name}", (("am", "is", name),))]}, []))
        tables = memory._tables
        tables.append("commits", {name: tables.read("commits")[name][:1] for name in tables.columns("commits").names})
        flushed, inner = Flushed(monkeypatch), []
        fsync = store.lance.file_sync._fsync

        def slow(path: Path) -> None:
            if not inner:
                inner.append(path)
                tables.sync(["commits"])  # as a commit does during a merge
                inner.extend(flushed.paths)
            fsync(path)

        monkeypatch.setattr(store.lance.file_sync, "_fsync", slow)
        monkeypatch.setattr(store.lance.file_sync, "at_once", lambda work, items: [work(item) for item in items])
        tables.sync(["commits"])
        assert set(inner[1:]) == set(flushed.paths)
        tables.roll_back("commits", tables.version("commits") - 1, 2)
