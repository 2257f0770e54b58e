"""Large arrays lie in files without a name; without disk space they lie in memory."""

import os
import resource
import time
from pathlib import Path

import numpy as np
import pytest

from store.index.append_only_arrays import GrowableArray
from store.index.file_arrays import (
    FILE_MIN_BYTES,
    ArrayStorage,
    drop_first,
    link_file,
    map_file,
    map_scattered,
    page_in,
    read_ahead,
)
from tests.store.index.resident import resident_share

LENGTH = FILE_MIN_BYTES // 8


def in_a_file(array: np.ndarray) -> bool:
    """Whether the array's pages belong to a file."""
    at = array.__array_interface__["data"][0]
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= at < last:
            return line.split()[4] != "0"
    return False


def test_large_arrays_are_in_nameless_files_and_small_arrays_in_memory(tmp_path: Path) -> None:
    storage = ArrayStorage(tmp_path)
    large = storage.empty((LENGTH, 1), np.int64)
    large[:] = np.arange(LENGTH)[:, None]
    assert in_a_file(large)
    assert int(large.sum()) == LENGTH * (LENGTH - 1) // 2
    assert not list(tmp_path.iterdir())
    assert not in_a_file(storage.empty((LENGTH // 2,), np.int64))
    assert not in_a_file(ArrayStorage().empty((LENGTH,), np.int64))


@pytest.mark.parametrize(
    "shape, dtype", [((LENGTH,), np.int64), ((LENGTH, 2), np.float32), ((8 * LENGTH + 1,), np.int8)]
)
def test_a_nameless_file_can_be_given_a_name_and_is_read_as_any_other(
    tmp_path: Path, shape: tuple[int, ...], dtype: type
) -> None:
    array = ArrayStorage(tmp_path).empty(shape, dtype)
    array[:] = np.arange(array.size).reshape(shape) % 100
    expected = array.copy()
    assert link_file(array, tmp_path / "named.npy")
    del array
    assert np.array_equal(np.load(tmp_path / "named.npy", allow_pickle=False), expected)
    assert np.array_equal(map_file(tmp_path / "named.npy"), expected)


def test_only_a_whole_nameless_file_is_given_a_name(tmp_path: Path) -> None:
    array = ArrayStorage(tmp_path).empty((2 * LENGTH,), np.int64)
    for part in (array[1:], array[:-1], array.reshape(2, -1), array.view(np.uint64), np.zeros(2 * LENGTH, np.int64)):
        assert not link_file(part, tmp_path / "named.npy")
    (tmp_path / "named.npy").touch()
    assert not link_file(array, tmp_path / "named.npy"), "there is such a file"
    (tmp_path / "named.npy").unlink()
    assert link_file(array, tmp_path / "named.npy")


def test_file_system_without_o_tmpfile_gets_deleted_files_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refuse(path: Path, flags: int, *more: int, **kwargs: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return opened(path, flags, *more, **kwargs)

    monkeypatch.setattr(os, "open", refuse)
    array = ArrayStorage(tmp_path).empty((LENGTH,), np.int64)
    array[:] = 1
    assert in_a_file(array)
    assert not list(tmp_path.iterdir())
    assert not link_file(array, tmp_path / "named.npy")


def test_no_descriptor_of_a_nameless_file_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    arrays = [ArrayStorage(tmp_path).empty((LENGTH,), np.int64) for _ in range(5)]
    assert len(os.listdir("/proc/self/fd")) > before
    arrays.clear()
    assert len(os.listdir("/proc/self/fd")) == before


def test_array_stays_in_memory_if_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    array = ArrayStorage(tmp_path).empty((LENGTH,), np.int64)
    array[:] = 1
    assert not in_a_file(array)


def test_views_of_a_growing_array_stay_what_they_are(tmp_path: Path) -> None:
    growing = GrowableArray(np.int64, storage=ArrayStorage(tmp_path))
    growing.extend(np.arange(LENGTH))
    before = growing.view()
    growing.extend(np.arange(3 * LENGTH))
    assert in_a_file(growing.view())
    assert np.array_equal(before, np.arange(LENGTH))
    assert np.array_equal(growing.view()[LENGTH:], np.arange(3 * LENGTH))


@pytest.mark.parametrize("first", [0, 7])
def test_read_ahead_does_not_change_the_rows_that_are_read(tmp_path: Path, first: int) -> None:
    values = np.random.default_rng(0).standard_normal((5_000, 384)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", values)
    rows = np.array([first, 11, 4_999])
    for array in (map_scattered(tmp_path / "vectors.npy"), values):
        for wanted in (rows, np.arange(first, 5_000), None):
            read_ahead(array, wanted)
        read_ahead(array[:5_000], rows)
        assert np.array_equal(array[rows], values[rows])


def test_rows_that_are_read_ahead_are_in_memory(tmp_path: Path) -> None:
    values = np.ones((20_000, 384), np.float32)
    file = tmp_path / "vectors.npy"
    np.save(file, values)
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    array = map_scattered(file)
    rows = np.arange(100, 20_000, 400)
    read_ahead(array, rows)
    time.sleep(0.5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    assert float(array[rows].sum()) == len(rows) * 384
    assert resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before < len(rows) // 2


def test_a_file_that_is_paged_in_has_all_its_pages_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "array.npy"
    np.save(file, np.arange(5 * LENGTH).reshape(5, -1))
    array = map_file(file)
    assert resident_share(file) < 0.2
    page_in(array)
    assert resident_share(file) == 1.0
    assert np.array_equal(array.ravel(), np.arange(5 * LENGTH))


def test_drop_first_keeps_the_content_readable(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", np.arange(5 * LENGTH))
    array = map_file(tmp_path / "array.npy")
    page_in(array)
    drop_first(array)
    assert np.array_equal(array, np.arange(5 * LENGTH))


def test_page_in_and_drop_first_ignore_arrays_without_a_file_and_empty_files(tmp_path: Path) -> None:
    page_in(np.arange(10))
    drop_first(np.arange(10))
    np.save(tmp_path / "empty.npy", np.empty((0, 3)))
    page_in(map_file(tmp_path / "empty.npy"))
