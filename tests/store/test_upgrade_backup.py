"""The backup before a migration: an older hippod can restore it, and a migration without room for it changes nothing."""

import json
import os
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from store import upgrade_backup
from store.backup import local
from store.backup.local import restore
from store.backup_layout import SUMMARY
from store.errors import StoreRefused
from store.export.json_lines import export_lines
from store.lance.layout import manifests, table_folder
from store.lance.schema import FORMAT, commits
from store.lance.tables import Tables
from store.log import migrations
from store.log.store_summary import encoder_of_store, summarize_store
from store.log.write_ahead_log import FOLDER as LOG
from store.store import Store
from store.types import Batch
from store.upgrade_backup import KEEP_S, remove_expired, upgrade_backups
from store.verify.verify import verify

RELEASED = Path(__file__).parent / "log" / "released"
EARLIER = range(1, FORMAT)


def extracted(place: Path, number: int) -> Path:
    """Returns a store of an earlier format, as a released version left it."""
    with tarfile.open(RELEASED / f"format-{number}.tar.xz") as archive:
        archive.extractall(place, filter="data")
    return place / "store"


def opened(folder: Path) -> Store:
    identity = encoder_of_store(folder)
    assert identity is not None
    return Store(folder, identity)


def table_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for table in folder.glob("*.lance")
        for path in table.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("number", EARLIER)
def test_the_store_before_the_upgrade_can_be_restored(tmp_path: Path, number: int) -> None:
    folder = extracted(tmp_path, number)
    (folder / "inbox").mkdir(exist_ok=True)
    (folder / "inbox" / "000000000001.jsonl").write_text("waits")
    before = table_files(folder)
    with opened(folder) as store:
        migrated = list(export_lines(store.snapshot()))
        commit = summarize_store(folder).commit
        store.compact()
    [backup] = upgrade_backups(folder)
    assert backup.name.startswith(f"upgrade-backup-format-{number}-commit-")
    assert json.loads((backup / SUMMARY).read_text())["commit"] < commit
    assert before.items() <= table_files(backup).items()

    restore(backup, folder)
    assert summarize_store(folder).format == number
    assert (folder / "inbox" / "000000000001.jsonl").read_text() == "waits"
    assert before.items() <= table_files(folder).items()
    with opened(folder) as store:  # the next upgrade replaces the backup
        assert store.found_format == number
        assert list(export_lines(store.snapshot())) == migrated
    assert len(upgrade_backups(folder)) == 1


def test_a_store_of_this_format_needs_no_backup(tmp_path: Path) -> None:
    folder = extracted(tmp_path, FORMAT)
    opened(folder).close()
    assert upgrade_backups(folder) == []


@pytest.mark.parametrize("links", [True, False], ids=["links", "copies"])
def test_upgrade_without_disk_space_for_its_backup_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    folder = extracted(tmp_path, 3)
    size = sum(map(len, table_files(folder).values()))
    free = upgrade_backup.SPARE_BYTES + size * (1 if links else 2)

    def refused(*_: Any) -> None:
        raise PermissionError("this file system has no hard links")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free - 1))
    with pytest.raises(StoreRefused, match=r"format 3.*need [\d,]+ bytes.*Nothing was changed: make room"):
        opened(folder)
    assert summarize_store(folder).format == 3
    assert list(folder.glob("upgrade-backup*")) == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free + size))
    opened(folder).close()
    [backup] = upgrade_backups(folder)
    linked = [path.stat().st_nlink > 1 for path in backup.rglob("*.manifest")]
    assert all(linked) if links else not any(linked)


def test_repeated_interrupted_migrations_leave_one_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = extracted(tmp_path, 3)
    whole = migrations.STEPS[3]

    def interrupted(tables: Any) -> None:
        whole(tables)
        raise KeyboardInterrupt

    monkeypatch.setitem(migrations.STEPS, 3, interrupted)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            opened(folder)
        assert len(upgrade_backups(folder)) == 1
    monkeypatch.undo()
    opened(folder).close()
    [backup] = upgrade_backups(folder)
    restore(backup, folder)
    assert summarize_store(folder).format == 3


def test_a_backup_is_kept_for_a_month(tmp_path: Path) -> None:
    folder = extracted(tmp_path, 3)
    opened(folder).close()
    [backup] = upgrade_backups(folder)
    unreadable = folder / "upgrade-backup-format-2-commit-7"
    unreadable.mkdir()
    remove_expired(folder)
    assert upgrade_backups(folder) == [unreadable, backup]
    note = json.loads((backup / SUMMARY).read_text())
    (backup / SUMMARY).write_text(json.dumps(note | {"made": note["made"] - KEEP_S - 1}))
    remove_expired(folder)
    assert upgrade_backups(folder) == [unreadable]


def commit_with_format_4(folder: Path, count: int) -> int:
    """Adds commits as a hippod of format 4 does: each as rows and versions of the tables. Returns the last one's number."""
    identity = encoder_of_store(folder)
    assert identity is not None
    for _ in range(count):
        tables = Tables(folder, identity.dim, marked=False)
        last = commits.from_table(tables.read("commits"))[-1]
        others = {name: version for name, version in tables.versions.items() if name != "commits"}
        row = commits.CommitRow(last.seq + 1, last.time + 1, "change", others, {"from": "format 4"}, {})
        writer = tables.writer()
        writer.add_columns("commits", commits.to_columns(row))
        writer.sync()
    return row.seq


@pytest.mark.parametrize("torn", [False, True], ids=["whole", "torn"])
def test_a_log_of_a_newer_format_does_not_apply_to_a_restored_older_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: bool
) -> None:
    """A downgrade restores with a hippod that does not know the log's folder, so the folder stays."""
    folder = extracted(tmp_path, 4)
    encoder = encoder_of_store(folder)
    assert encoder is not None
    with opened(folder) as store:
        store.commit(Batch(positions={"from": "format 5"}))
    [backup] = upgrade_backups(folder)
    with monkeypatch.context() as older:
        older.setattr(local, "LOG", "no such folder")
        restore(backup, folder)
    assert list((folder / LOG).glob("*.records"))
    assert summarize_store(folder).format == 4
    last = commit_with_format_4(folder, 8)
    if torn:
        commit_with_format_4(folder, 1)
        manifest = manifests(table_folder(folder, "commits"))[0]
        manifest.write_bytes(bytes(manifest.stat().st_size))
    with Store(folder, encoder) as store:
        assert store.found_format == 4
        assert store.positions["from"] == "format 4"
        assert store.snapshot().commit > last  # the migration and the synonyms
        assert verify(store).problems == []
    assert len(list(folder.glob("before-restore-*/log/*.records"))) == 1
    [backup] = upgrade_backups(folder)
    assert not (backup / LOG).exists()
