"""Verify detects any changed bit in a file of the tables or of the checkpoint, and names the table and the file."""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from store.errors import StoreDamaged
from store.lance.checksums import NAME, Checksums
from store.lance.layout import DATA, file_names, manifests, table_folder
from store.lance.schema import TABLES
from store.log.write_ahead_log import FOLDER
from store.store import Store
from store.verify.check_files import KEYS, check_tables, damaged_elsewhere, rows_in
from store.verify.verify import verify
from tests.store.small_store import complete, numbered_documents, open_store

WINDOW_BYTES = 32
"""One bit is flipped in each window of a data file. No column's values are short enough to lie between two flips."""

MANY = 10**6
"""More fragments than a table has."""


@contextmanager
def flipped(file: Path, bit: int) -> Iterator[None]:
    """Flips one bit of the file on the disk."""
    with file.open("r+b") as content:
        content.seek(bit // 8)
        byte = content.read(1)[0]
        content.seek(bit // 8)
        content.write(bytes([byte ^ 1 << bit % 8]))
    try:
        yield
    finally:
        with file.open("r+b") as content:
            content.seek(bit // 8)
            content.write(bytes([byte]))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """With deleted rows and a checkpoint."""
    with open_store(tmp_path_factory.mktemp("flips") / "store") as opened:
        for first in range(0, 12, 3):
            opened.commit(complete(opened, numbered_documents(first, first + 3), []))
        opened.commit(complete(opened, {}, ["d1", "d2"]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opened._compactor, "reclaim", lambda: None)  # as if hippod ended before that
            opened.purge(timedelta(0))
        opened.commit(complete(opened, numbered_documents(40, 43), ["d3"]))
        opened.compact(MANY)  # writes the log into the tables, and rewrites none
        opened.write_checkpoint()
        yield opened


def needed(store: Store) -> dict[str, list[str]]:
    return store.checksums.by_table()


def problems(store: Store, table: str, name: str) -> list[str]:
    return check_tables(store.folder, {table: [name]}, store.checksums, lambda _table, _name: "").problems


def test_every_file_of_every_table_has_a_checksum(store: Store) -> None:
    files = needed(store)
    assert set(files) == set(TABLES) == set(KEYS)
    on_disk = {
        table: {
            f"{table}.lance/{part}/{name}"
            for part, names in file_names(table_folder(store.folder, table)).items()
            for name in names
            if "hint" not in name
        }
        for table in TABLES
    }
    assert {table: set(names) for table, names in files.items()} == on_disk
    found = check_tables(store.folder, files, store.checksums, lambda _table, _name: "")
    assert (found.problems, found.without_checksum) == ([], 0)
    assert found.checked == sum(map(len, files.values()))
    assert {Path(name).parts[1] for names in files.values() for name in names} == {
        "data",
        "_deletions",
        "_transactions",
        "_versions",
    }


@pytest.mark.parametrize("table", TABLES)
def test_a_flipped_bit_anywhere_in_a_table_is_found(store: Store, table: str) -> None:
    chosen = random.Random(table)
    for name in needed(store)[table]:
        file = store.folder / name
        size = file.stat().st_size
        whole = Path(name).parts[1] == DATA
        starts = range(0, size, WINDOW_BYTES) if whole else [chosen.randrange(size) for _ in range(8)]
        for start in starts:
            with flipped(file, 8 * start + chosen.randrange(8 * min(WINDOW_BYTES if whole else 1, size - start))):
                [problem] = problems(store, table, name)
            assert problem.startswith(f"the file {name} of the table {table} is damaged")
        assert problems(store, table, name) == []


@pytest.mark.parametrize("table", TABLES)
def test_verify_names_table_file_and_rows(store: Store, table: str) -> None:
    name = next(name for name in needed(store)[table] if f"/{DATA}/" in name)
    with flipped(store.folder / name, 8 * ((store.folder / name).stat().st_size // 5)):
        found = verify(store).problems
    assert any(name in problem and f"the table {table}" in problem for problem in found), found
    assert all("restore" in problem for problem in found if name in problem)
    assert verify(store).problems == []


def test_problem_names_the_documents_in_a_damaged_file(store: Store) -> None:
    told = [rows_in(store.folder, store.snapshot().dim, "documents", name) for name in needed(store)["documents"]]
    assert all(f"uri 'd{number}'" in " ".join(told) for number in (40, 41, 42))
    assert sum(each != "" for each in told) == store._tables.fragment_count("documents")


def test_a_missing_file_is_a_damaged_one(store: Store, tmp_path: Path) -> None:
    name = next(name for name in needed(store)["synonyms"] if "_transactions" in name)
    shutil.move(store.folder / name, tmp_path / "aside")
    try:
        assert problems(store, "synonyms", name)
    finally:
        shutil.move(tmp_path / "aside", store.folder / name)


def test_flipped_bit_in_checkpoint_or_checksum_file_is_found(store: Store) -> None:
    chosen = random.Random(7)
    [snapshot] = store.folder.glob("snapshot-*")
    for file in [*sorted(snapshot.iterdir()), store.folder / NAME]:
        size = file.stat().st_size
        for _ in range(3 if size else 0):
            with flipped(file, chosen.randrange(8 * size)):
                found = list(damaged_elsewhere(store.folder, store.checksums))
            assert found and all(file.name in problem for problem in found), file


def test_text_changed_before_loading_is_detected_by_its_passage_id(tmp_path: Path) -> None:
    """As if a bit had changed, undetected by the file's encoding, before the first checksum."""
    with open_store(tmp_path / "store") as opened:
        opened.commit(complete(opened, numbered_documents(0, 4), []))
        tables = opened._tables
        rows = tables.read("passages")
        texts = rows["text"].to_pylist()
        column = rows.schema.get_field_index("text")
        changed = rows.set_column(column, rows.schema.field("text"), [["texu 0", *texts[1:]]])

        with opened._commits.changing() as writer:
            writer.written("passages").delete("true")
            writer.add("passages", changed)
            opened._commits.add_commit(writer, "purge")
    with open_store(tmp_path / "store") as opened:
        [problem] = verify(opened).problems
        assert rows["id"][0].as_py() in problem


@pytest.mark.parametrize(
    ("left", "request_"), [(None, "unverified\n"), (b"", "unverified"), (b"12 0a", " unverified\r\n")]
)
def test_store_without_checksums_opens_only_on_request_and_stays_unverified(
    tmp_path: Path, left: bytes | None, request_: str
) -> None:
    with open_store(tmp_path / "store") as opened:
        opened.commit(complete(opened, numbered_documents(0, 8), []))
    (tmp_path / "store" / NAME).unlink()
    if left is not None:
        (tmp_path / "store" / NAME).write_bytes(left)
    with pytest.raises(StoreDamaged, match=r"cannot be verified; restore a backup.*echo unverified > "):
        open_store(tmp_path / "store")
    (tmp_path / "store" / NAME).write_text(request_)
    with open_store(tmp_path / "store") as opened:
        opened.commit(complete(opened, numbered_documents(8, 12), []))
        opened.compact(MANY)
        found = verify(opened)
        assert found.problems == []
        assert found.without_checksum > 0 and found.checked > 0
        opened.compact()
        opened.commit(complete(opened, numbered_documents(12, 13), []))
        assert verify(opened).without_checksum < found.without_checksum


def test_a_file_whose_line_is_damaged_is_not_recorded_as_correct(tmp_path: Path) -> None:
    with open_store(tmp_path) as opened:
        opened.commit(complete(opened, numbered_documents(0, 2), []))
        opened.compact(MANY)
    with flipped(tmp_path / NAME, 4):
        for first in (2, 3):
            with open_store(tmp_path) as opened:
                opened.commit(complete(opened, numbered_documents(first, first + 1), []))
                opened.compact(MANY)
                assert sum(each.value is None for each in opened.checksums._known.values()) == 1


def test_checksums_survive_a_crash_a_full_disk_and_pruning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "store"
    with open_store(folder) as opened:
        opened.commit(complete(opened, numbered_documents(0, 4), []))
        whole = (folder / NAME).read_bytes()
    (folder / NAME).write_bytes(whole[:-20])  # power was lost while the last line was written
    with open_store(folder) as opened:
        opened.compact(MANY)
        assert verify(opened).problems == []
        assert (folder / NAME).read_bytes().endswith(b"\n")

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        before = (folder / NAME).read_bytes()
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
            patch.setattr("store.lance.checksums._write", full)
            opened.commit(complete(opened, numbered_documents(4, 6), []))
            opened.compact()
        assert (folder / NAME).read_bytes() == before
        assert verify(opened).problems == []
        monkeypatch.setattr("store.lance.checksums.REWRITE_MIN_LINES", 0)
        for first in range(6, 12):
            opened.commit(complete(opened, numbered_documents(first, first + 1), []))
        opened.compact()
        assert verify(opened).problems == []
        lines = (folder / NAME).read_bytes().count(b"\n")
        assert lines == len(Checksums(folder, True)._known)


def test_verify_names_a_damaged_log(tmp_path: Path) -> None:
    with open_store(tmp_path) as opened:
        for first in (0, 2, 4):
            opened.commit(complete(opened, numbered_documents(first, first + 2), []))
        [file] = (tmp_path / FOLDER).glob("*.records")
        for at in (0.3, 0.6, 0.9):
            with flipped(file, 8 * int(at * file.stat().st_size)):
                [problem] = verify(opened).problems
            assert problem.startswith(f"the log {tmp_path / FOLDER} is damaged: it lacks commit")
        assert verify(opened).problems == []


def test_no_version_is_made_from_a_damaged_manifest(tmp_path: Path) -> None:
    """Its files would have correct checksums."""
    with open_store(tmp_path) as opened:
        opened.commit(complete(opened, numbered_documents(0, 2), []))
        opened.compact()
        opened.commit(complete(opened, numbered_documents(2, 4), []))
        newest = manifests(table_folder(tmp_path, "passages"))[0]
        with flipped(newest, 4 * newest.stat().st_size):
            with pytest.raises(StoreDamaged, match=f"{newest.name} is damaged"):
                opened.compact()
            opened.commit(complete(opened, numbered_documents(4, 5), []))
        opened.compact()
        assert verify(opened).problems == []
