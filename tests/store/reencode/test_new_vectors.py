"""The file of new vectors returns what was added, and survives whatever a crash leaves at its end."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.errors import NotEncoded
from store.fixed_point import Fixed, fixed
from store.reencode import new_vectors
from store.reencode.new_vectors import FOLDER, VECTORS, NewVectors, Target, discard, key_of, target_of

TARGET = Target("other", 3)


def vectors(count: int, seed: int = 0) -> Fixed:
    return fixed(np.random.default_rng(seed).standard_normal((count, 3)).astype(np.float32))


def keys(first: int, after: int) -> list[bytes]:
    return [key_of("phrases", str(number)) for number in range(first, after)]


def test_keys_differ_unless_kind_and_parts_are_equal() -> None:
    texts = [("phrases", "ab", "c"), ("phrases", "a", "bc"), ("phrases", "abc"), ("triples", "ab", "c"), ("phrases",)]
    texts += [("phrases", "ab\0c"), ("phrases", "ab", ""), ("phrases", "", "ab"), ("phrases", "\ud800")]
    assert len({key_of(*text) for text in texts}) == len(texts)


@pytest.mark.parametrize("merged", [1, 4, 1000])
def test_vectors_are_found_by_their_keys_now_and_after_opening_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merged: int
) -> None:
    monkeypatch.setattr(new_vectors, "MERGED_KEYS", merged)
    expected = vectors(10)
    found = NewVectors(tmp_path, TARGET)
    for first, after in ((0, 3), (3, 4), (4, 10)):
        found.add(keys(first, after), expected[first:after])
        assert (found.vectors_of(keys(0, after)) == expected[:after]).all()
    found.close()
    found = NewVectors(tmp_path, TARGET)
    assert len(found) == 10
    order = [7, 0, 9, 3]
    assert (found.vectors_of([keys(0, 10)[place] for place in order]) == expected[order]).all()
    assert found.lacking([*keys(5, 12), keys(0, 1)[0]]) == [5, 6]
    with pytest.raises(NotEncoded):
        found.vectors_of(keys(9, 11))
    found.close()


def test_another_target_starts_without_vectors(tmp_path: Path) -> None:
    for target in (TARGET, Target("other", 3, "passage: "), Target("third", 3)):
        found = NewVectors(tmp_path, target)
        assert len(found) == 0 and target_of(tmp_path) == target
        found.add(keys(0, 2), vectors(2))
        found.close()
    discard(tmp_path)
    assert target_of(tmp_path) is None and not (tmp_path / FOLDER).exists()


@settings(deadline=None, max_examples=50)
@given(cut=st.integers(0, 400), flipped=st.integers(0, 399), zeros=st.integers(0, 100))
def test_crash_loses_only_damaged_vectors_and_what_follows_them(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flipped: int, zeros: int
) -> None:
    folder = tmp_path_factory.mktemp("store")
    expected = vectors(10)
    found = NewVectors(folder, TARGET)
    found.add(keys(0, 10), expected)
    found.close()
    file = folder / FOLDER / VECTORS
    content = bytearray(file.read_bytes())
    record_bytes = len(content) // 10
    content[flipped % len(content)] ^= 1
    file.write_bytes(bytes(content[:cut]) + bytes(zeros))
    found = NewVectors(folder, TARGET)
    whole = min(cut, flipped % len(content)) // record_bytes
    assert len(found) == whole
    assert (found.vectors_of(keys(0, whole)) == expected[:whole]).all()
    lacking = [keys(0, 10)[place] for place in found.lacking(keys(0, 10))]
    assert lacking == keys(whole, 10)
    found.add(lacking, expected[whole:])
    assert (found.vectors_of(keys(0, 10)) == expected).all()
    found.close()
