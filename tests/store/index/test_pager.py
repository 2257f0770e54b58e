"""Mapped files are paged into memory in the background, each part once."""

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import store.index.pager
from store.index.file_arrays import map_file, page_in
from store.index.pager import Pager
from store.index.parallel import wait_for_background
from store.index.part import PartFiles, PartWriter
from store.index.vectors import matrix
from store.index.vectors.codes import CodedBlock
from store.index.vectors.matrix import BLOCK_VECTORS, Vectors
from tests.store.index.resident import resident_share

ROWS, DIM = 40_000, 64


class Part:
    def __init__(self, file: Path, rows: int = ROWS) -> None:
        np.save(file, np.ones((rows, DIM), np.int8))
        self.file, self.array = file, map_file(file)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"rows": self.array, "of no file": np.ones(3)}


def test_each_part_is_paged_in_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[int] = []

    def note(array: NDArray[Any]) -> None:
        brought.append(len(array))
        page_in(array)

    monkeypatch.setattr(store.index.pager, "page_in", note)
    pager, first, second = Pager("parts"), Part(tmp_path / "first.npy"), Part(tmp_path / "second.npy", ROWS + 1)
    assert resident_share(first.file) < 1.0
    pager.bring([first])
    pager.bring([first])
    pager.bring([first, second])
    wait_for_background()
    assert brought == [ROWS, ROWS + 1]
    assert resident_share(first.file) == resident_share(second.file) == 1.0


def test_part_that_returns_after_another_part_is_paged_in_again(tmp_path: Path) -> None:
    pager, first, second = Pager("parts"), Part(tmp_path / "first.npy"), Part(tmp_path / "second.npy")
    for parts in ([first], [second], [first]):
        pager.bring(parts)
    wait_for_background()
    assert set(pager._brought) == {first}


def test_a_part_that_is_replaced_is_held_no_more(tmp_path: Path) -> None:
    pager, part = Pager("parts"), Part(tmp_path / "part.npy")
    pager.bring([part])
    wait_for_background()
    held = weakref.ref(part.array)
    del part
    gc.collect()
    assert held() is None


def test_part_without_a_file_starts_no_thread() -> None:
    pager = Pager("parts")
    pager.bring([CodedBlock(np.ones((3, DIM), np.int8), np.ones(3, np.float32))])
    wait_for_background()
    assert pager._thread is None


def test_page_in_codes_makes_the_code_file_resident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(1).standard_normal((BLOCK_VECTORS, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    made = Vectors(DIM)
    made.extend(vectors)
    monkeypatch.setattr(matrix, "GROUPED_MIN_ROWS", 0)
    out, saved = PartWriter(tmp_path, None, {}, lambda: None), Vectors(DIM)
    made.save(out, "made")
    saved.load(PartFiles(out.place, out.files, out.values), "made")
    (codes,) = tmp_path.glob("made-codes-*")
    assert resident_share(codes) < 1.0
    saved.view().page_in_codes()
    wait_for_background()
    assert resident_share(codes) == 1.0
