"""The log loses no acknowledged commit: opening truncates an incomplete last record, and nothing else."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from store.errors import StoreDamaged
from store.log.log_files import FOLDER, LogFiles

SCHEMAS = {"one": pa.schema([("number", pa.int64()), ("text", pa.string())]), "two": pa.schema([("x", pa.float32())])}


def rows(commit: int) -> dict[str, pa.Table]:
    one = pa.table({"number": [commit, -commit], "text": [f"text {commit}", ""]}, schema=SCHEMAS["one"])
    return {"one": one} | ({"two": pa.table({"x": [commit / 2]}, schema=SCHEMAS["two"])} if commit % 2 else {})


def commits(store: Path) -> list[int]:
    """Opens the log; returns its commits, of which it checks the rows."""
    found = LogFiles(store, SCHEMAS).records
    assert all(record.rows == rows(record.commit) for record in found)
    return [record.commit for record in found]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    log = LogFiles(tmp_path, SCHEMAS)
    for commit in (4, 5, 6):
        log.append(commit, rows(commit))
    log.close()
    return tmp_path


def the_file(store: Path) -> Path:
    [path] = (store / FOLDER).iterdir()
    return path


def test_what_was_appended_is_found(store: Path) -> None:
    assert commits(store) == [4, 5, 6]
    again = LogFiles(store, SCHEMAS)
    again.append(7, rows(7))
    again.close()
    assert commits(store) == [4, 5, 6, 7]


def test_a_torn_record_is_truncated(store: Path) -> None:
    path = the_file(store)
    whole = path.read_bytes()
    end = whole.rindex(b"HPLR")
    for cut in range(end, len(whole), 5):
        for more in (
            b"",
            bytes(min(len(whole) - cut, 40)),
        ):  # a file system may leave zeros where the content is missing
            path.write_bytes(whole[:cut] + more)
            if path.read_bytes() != whole:  # the last bytes are zeros
                assert commits(store) == [4, 5], cut
                assert path.read_bytes() == whole[:end]


def test_a_flipped_bit_before_the_last_record_is_damage(store: Path) -> None:
    path = the_file(store)
    whole = path.read_bytes()
    for at in range(0, whole.rindex(b"HPLR"), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(StoreDamaged, match="is damaged at byte"):
            commits(store)


def test_only_the_last_file_can_end_with_a_torn_record(store: Path) -> None:
    path = the_file(store)
    log = LogFiles(store, SCHEMAS)
    log.append(7, rows(7))
    log.close()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreDamaged, match="is damaged at byte"):
        commits(store)


def test_a_failed_append_leaves_the_log_as_it_was(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    log = LogFiles(store, SCHEMAS)
    for call in ("pwrite", "fdatasync"):
        with monkeypatch.context() as broken, pytest.raises(OSError, match="No space"):
            broken.setattr(os, call, full)
            log.append(7, rows(7))
    log.append(7, rows(7))
    with monkeypatch.context() as broken, pytest.raises(OSError, match="No space"):
        broken.setattr(os, "fdatasync", full)
        broken.setattr(os, "ftruncate", full)
        log.append(8, rows(8))
    with pytest.raises(OSError, match="cannot be written since"):  # a record after an unacknowledged one
        log.append(8, rows(8))


def test_sealed_files_are_removed_and_no_later_one(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed append has begun a file of the same name as the next one."""
    log = LogFiles(store, SCHEMAS)

    def fails(_file: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken, pytest.raises(OSError, match="Input/output"):
        broken.setattr(os, "fdatasync", fails)
        log.append(7, rows(7))
    sealed = log.seal()
    log.append(7, rows(7))
    log.remove(sealed)
    log.close()
    assert commits(store) == [7]
