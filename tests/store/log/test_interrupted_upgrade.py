"""An upgrade from any earlier format, by a process that ends at any step of it, is completed by the next start."""

import json
import os
import tarfile
from pathlib import Path
from unittest import mock

import pytest

from store import store as opening
from store.lance.checksums import SUFFIXES, Checksums
from store.lance.schema import FORMAT
from store.lance.table_writer import TableWriter
from store.lance.tables import Tables
from store.log import commits
from store.log.mark import Mark, read_mark, write_mark
from store.log.store_summary import encoder_of_store
from store.store import Store
from store.verify.verify import verify
from tests.store.log.interruptions import copied_at_every_step, sampled
from tests.store.small_store import exported

RELEASED = Path(__file__).parent / "released"
STEPS = (
    (opening, "make_upgrade_backup"),
    (TableWriter, "replace_rows"),
    (TableWriter, "add_columns"),
    (Checksums, "sync"),
    (Tables, "publish"),
    (commits, "write_mark"),
)


def opened(folder: Path) -> Store:
    identity = encoder_of_store(folder)
    assert identity is not None
    return Store(folder, identity)


def test_the_first_mark_names_flushed_files_after_a_killed_process(tmp_path: Path) -> None:
    """The process ends after it has recorded checksums, perhaps before it has flushed the files."""
    with tarfile.open(RELEASED / "format-4.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder, flushed, marks = tmp_path / "store", set(), []
    with mock.patch.object(commits, "write_mark", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        opened(folder)
    fsync = os.fsync

    def note(file: int) -> None:
        fsync(file)
        flushed.add(Path(os.readlink(f"/proc/self/fd/{file}")))

    def check(store: Path, mark: Mark) -> None:
        marks.append(mark)
        assert {path for path in folder.glob("*.lance/*/*") if path.suffix in SUFFIXES} <= flushed
        write_mark(store, mark)

    with mock.patch.object(os, "fsync", note), mock.patch.object(commits, "write_mark", check):
        opened(folder).close()
    assert marks


@pytest.mark.slow
@pytest.mark.parametrize("found", range(1, FORMAT))
def test_an_upgrade_that_ends_at_any_step_is_completed_by_the_next_start(tmp_path: Path, found: int) -> None:
    with tarfile.open(RELEASED / f"format-{found}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    expected = json.loads((tmp_path / "expected.json").read_text())["export"]
    with copied_at_every_step(tmp_path / "store", tmp_path, STEPS) as copies, opened(tmp_path / "store") as store:
        assert store.found_format == found
        assert exported(store) == expected
        rows = store._commits.last.seq
    # The steps of each format: its rows, the files before the commit's row, that row, and all files again.
    assert len(copies) >= 2 * (1 + 4 * (FORMAT - found))
    for copy in sampled(copies, f"format {found}"):
        with opened(copy) as store:
            assert found <= store.found_format <= FORMAT, copy
            assert exported(store) == expected, copy
            assert store._commits.last.seq == rows, copy
            assert verify(store).problems == [], copy
        assert read_mark(copy) is not None
        with opened(copy) as store:
            assert store.found_format == FORMAT
            assert exported(store) == expected, copy
