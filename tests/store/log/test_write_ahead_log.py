"""The log loses no acknowledged commit: opening moves an incomplete last record elsewhere, and nothing else."""

import os
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from store.errors import StoreDamaged
from store.log import write_ahead_log
from store.log.write_ahead_log import FOLDER, WriteAheadLog

SCHEMAS = {"one": pa.schema([("number", pa.int64()), ("text", pa.string())]), "two": pa.schema([("x", pa.float32())])}


def rows(commit: int) -> dict[str, pa.Table]:
    one = pa.table({"number": [commit, -commit], "text": [f"text {commit}", ""]}, schema=SCHEMAS["one"])
    return {"one": one} | ({"two": pa.table({"x": [commit / 2]}, schema=SCHEMAS["two"])} if commit % 2 else {})


def commits(store: Path) -> list[int]:
    """Opens the log; returns its commits, of which it checks the rows."""
    found = WriteAheadLog(store, SCHEMAS, 0).records
    assert all(record.rows == rows(record.commit) for record in found)
    return [record.commit for record in found]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    log = WriteAheadLog(tmp_path, SCHEMAS, 0)
    for commit in (4, 5, 6):
        log.append(commit, rows(commit))
    log.close()
    return tmp_path


def the_file(store: Path) -> Path:
    [path] = (store / FOLDER).iterdir()
    return path


def test_what_was_appended_is_found(store: Path) -> None:
    assert commits(store) == [4, 5, 6]
    again = WriteAheadLog(store, SCHEMAS, 0)
    again.append(7, rows(7))
    again.close()
    assert commits(store) == [4, 5, 6, 7]


def test_a_torn_record_is_moved_elsewhere(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _file: None)  # hundreds of them take long
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
                moved = store / "torn" / f"{path.stem}-{end}.records"
                assert cut + len(more) == end or moved.read_bytes() == whole[end:cut] + more


def test_a_record_in_a_text_is_none_of_the_file(store: Path) -> None:
    """A torn commit contains the records of another log, as a document may, and as a reused block of the disk does."""
    path = the_file(store)
    others = path.read_bytes()
    path.unlink()
    log = WriteAheadLog(store, SCHEMAS, 0)
    log.append(4, rows(4))
    end = the_file(store).stat().st_size
    log.append(5, {"one": pa.table({"number": [1], "text": [others.decode("latin1")]}, schema=SCHEMAS["one"])})
    log.close()
    whole = the_file(store).read_bytes()
    for torn in (whole[:end] + others, whole[:end] + b"\0" + others, whole[:-1]):
        the_file(store).write_bytes(torn)
        assert commits(store) == [4]


def test_a_flipped_bit_before_the_last_record_is_damage(store: Path) -> None:
    path = the_file(store)
    whole = path.read_bytes()
    for at in range(0, whole.rindex(b"HPLR"), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        with pytest.raises(StoreDamaged, match="is damaged at byte"):
            commits(store)


def test_a_damaged_record_that_was_acknowledged_stays(store: Path) -> None:
    path = the_file(store)
    whole = path.read_bytes()
    end = whole.rindex(b"HPLR")
    for at in range(end, len(whole), 7):
        damaged = whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]
        path.write_bytes(damaged)
        with pytest.raises(StoreDamaged, match=f"is damaged at byte {end}; restore a backup"):
            WriteAheadLog(store, SCHEMAS, 6)
        assert path.read_bytes() == damaged
    assert WriteAheadLog(store, SCHEMAS, 5).torn == [f"torn/{path.stem}-{end}.records"]


def test_only_the_last_file_can_end_with_a_torn_record(store: Path) -> None:
    path = the_file(store)
    log = WriteAheadLog(store, SCHEMAS, 0)
    log.append(7, rows(7))
    log.close()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreDamaged, match="is damaged at byte"):
        commits(store)


def test_a_failed_append_leaves_the_log_as_it_was(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    log = WriteAheadLog(store, SCHEMAS, 0)
    for call in ("pwrite", "fdatasync"):
        with monkeypatch.context() as broken, pytest.raises(OSError, match="No space"):
            broken.setattr(os, call, full)
            log.append(7, rows(7))
    log.append(7, rows(7))
    log.close()
    assert commits(store) == [4, 5, 6, 7]


def test_a_failed_commit_is_removed_from_the_disk_too(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed fdatasync, the record may be on the disk: it must not come back after a power loss."""
    log = WriteAheadLog(store, SCHEMAS, 0)
    calls: list[str] = []

    def called(name: str, error: OSError | None = None) -> Callable[..., None]:
        really = getattr(os, name)

        def call(*given: object) -> None:
            calls.append(name)
            if error is not None:
                raise error
            really(*given)

        return call

    log.append(7, rows(7))
    monkeypatch.setattr(os, "fdatasync", called("fdatasync", OSError(5, "Input/output error")))
    monkeypatch.setattr(os, "ftruncate", called("ftruncate"))
    monkeypatch.setattr(os, "fsync", called("fsync"))
    with pytest.raises(OSError, match="Input/output"):
        log.append(8, rows(8))
    assert calls == ["fdatasync", "ftruncate", "fsync"]


def test_rows_that_point_outside_their_record_are_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup's author can give such a record a correct checksum."""
    batch_of = write_ahead_log._batch

    def forged(table: pa.Table) -> SimpleNamespace:
        right, wrong = struct.pack("<3i", 0, 1000, 1777), struct.pack("<3i", 0, 1000, 1 << 30)
        content = bytes(batch_of(table).serialize())
        assert content.count(right) == 1
        return SimpleNamespace(serialize=lambda: pa.py_buffer(content.replace(right, wrong)))

    log = WriteAheadLog(store, SCHEMAS, 0)
    monkeypatch.setattr(write_ahead_log, "_batch", forged)
    log.append(7, {"one": pa.table({"number": [1, 2], "text": ["a" * 1000, "b" * 777]}, schema=SCHEMAS["one"])})
    log.close()
    with pytest.raises(pa.ArrowInvalid):
        WriteAheadLog(store, SCHEMAS, 0)


def test_sealed_files_are_removed_and_no_later_one(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed append has begun a file of the same name as the next one."""
    log = WriteAheadLog(store, SCHEMAS, 0)

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
