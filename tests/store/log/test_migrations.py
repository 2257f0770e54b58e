"""Upgrades: a store of every released format opens with its content; one of an unknown format is left unchanged."""

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from store.backup.local import restore
from store.errors import NewerFormat, OlderFormat
from store.export.json_lines import export_lines
from store.lance.schema import FORMAT
from store.lance.table_writer import TableWriter
from store.log import commits, migrations
from store.log.write_ahead_log import FOLDER as LOG
from store.upgrade_backup import upgrade_backups
from tests.e2e.real_hippod import Daemon
from tests.store.small_store import complete, open_store

RELEASED = sorted((Path(__file__).parent / "released").glob("format-*.tar.xz"))


def test_there_is_a_store_of_every_format() -> None:
    assert [path.name for path in RELEASED] == [f"format-{number}.tar.xz" for number in range(1, FORMAT + 1)]
    assert sorted(migrations.STEPS) == list(range(1, FORMAT))


@pytest.mark.daemon
@pytest.mark.parametrize("archive", RELEASED, ids=lambda path: path.name.partition(".")[0])
def test_released_store_opens_with_its_original_content(archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as gzipped:
        gzipped.extractall(tmp_path, filter="data")
    expected = json.loads((tmp_path / "expected.json").read_text())
    with Daemon(tmp_path, folders=()) as daemon:
        assert daemon.export() == expected["export"]
        assert {uri: each["state"] for uri, each in daemon.documents().items()} == expected["documents"]
        assert daemon.query("Who founded Project Lantern?", mode="hipporag2", k=1)[0]["title"] == "Odile Brandt"
        # It can be written to, and deriving its index again gives the same.
        daemon.add({"id": "more", "text": "The Moth fluorometer hangs in Widow Shaft."})
        assert daemon.wait()["documents"] == sum(state == "indexed" for state in expected["documents"].values()) + 1
        assert daemon.ctl("verify").code == 0
        backups = [each["format"] for each in daemon.events("upgrade_backup_made")]
        assert backups == [number for number in [int(archive.name[7])] if number < FORMAT]


def add_a_column(tables: TableWriter) -> None:
    tables.written("documents").add_columns({"language": "'en'"})


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes this hippod a later version, whose format is one higher."""

    def become(step: migrations.Step | None) -> None:
        monkeypatch.setattr(commits, "FORMAT", FORMAT + 1)
        monkeypatch.setattr(migrations, "STEPS", migrations.STEPS | ({} if step is None else {FORMAT: step}))

    return become


def a_store(folder: Path) -> list[str]:
    """Creates a store of this version with two documents; returns its export."""
    with open_store(folder) as store:
        store.commit(complete(store, {"u:1": [("T", "text 1", None)], "u:2": [("T", "text 2", None)]}, []))
        store.write_checkpoint()
        return list(export_lines(store.snapshot()))


@pytest.mark.slow
def test_migration_step_is_one_commit_and_runs_once(tmp_path: Path, later: Any) -> None:
    before = a_store(tmp_path)
    made: list[int] = []

    def step(tables: TableWriter) -> None:
        made.append(1)
        add_a_column(tables)

    later(step)
    with open_store(tmp_path) as store:
        assert store.found_format == FORMAT
        assert list(export_lines(store.snapshot())) == before
        assert "language" in store._tables.read("documents").column_names
        # Earlier commits cannot be queried: they are in the old format.
        assert store.horizon == store.snapshot().commit
        assert store.opened_from.startswith("rebuilt")
    with open_store(tmp_path) as store:
        assert store.found_format == FORMAT + 1
        assert list(export_lines(store.snapshot())) == before
    assert made == [1]


@pytest.mark.slow
def test_a_step_that_is_cut_short_leaves_the_store_as_it_was(tmp_path: Path, later: Any) -> None:
    before, killed = a_store(tmp_path / "store"), tmp_path / "killed"

    def cut_short(tables: TableWriter) -> None:
        add_a_column(tables)
        shutil.copytree(tmp_path / "store", killed, ignore=shutil.ignore_patterns("lock"))
        raise KeyboardInterrupt

    later(cut_short)
    with pytest.raises(KeyboardInterrupt):
        open_store(tmp_path / "store")
    later(add_a_column)
    with open_store(killed) as store:
        assert "documents" in store.repaired_tables
        assert list(export_lines(store.snapshot())) == before
        assert store._tables.read("documents").column_names.count("language") == 1


@pytest.mark.slow
def test_format_without_migration_step_is_refused_and_store_is_unchanged(tmp_path: Path, later: Any) -> None:
    before = a_store(tmp_path)
    later(None)
    with pytest.raises(OlderFormat, match=f"no step from format {FORMAT} to {FORMAT + 1}"):
        open_store(tmp_path)
    later(add_a_column)
    open_store(tmp_path).close()
    with pytest.MonkeyPatch.context() as back:
        back.setattr(commits, "FORMAT", FORMAT)
        with pytest.raises(NewerFormat, match=f"has format {FORMAT + 1}, this hippod reads up to {FORMAT}"):
            open_store(tmp_path)
    with open_store(tmp_path) as store:
        assert list(export_lines(store.snapshot())) == before


@pytest.mark.slow
def test_the_backup_before_an_upgrade_contains_the_commits_of_the_log(tmp_path: Path, later: Any) -> None:
    before = a_store(tmp_path)
    assert list((tmp_path / LOG).glob("*.records"))
    later(add_a_column)
    with open_store(tmp_path) as store:
        store.compact()
    [backup] = upgrade_backups(tmp_path)
    restore(backup, tmp_path)
    with pytest.MonkeyPatch.context() as back:
        back.setattr(commits, "FORMAT", FORMAT)
        with open_store(tmp_path) as store:
            assert list(export_lines(store.snapshot())) == before
