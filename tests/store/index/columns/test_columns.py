"""Columns of a checkpoint with later changes equal a list, however they are changed, written and mapped."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.index.columns import texts as texts_module
from store.index.columns.documents import MappedRefs, map_passages, passages_texts, shell_table, shells
from store.index.columns.holders import Holders, SavedHolders
from store.index.columns.row_lists import ListArrays, RowLists
from store.index.columns.texts import SavedTexts, SelectedTexts, Texts, blocks_of
from store.index.effective_triples import supplied_by_passage
from store.types import Document, PassageRef, State


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(texts_module, "BLOCK_TEXTS", 3)


WORDS = st.sampled_from(["", "a", "Straße", "東京", "🜚 two words"])


@given(st.lists(st.one_of(WORDS, st.sampled_from([None]))))
def test_texts_equal_appended_texts_in_memory_and_mapped_from_files(steps: list[str | None]) -> None:
    column, expected = Texts(), []
    for step in steps:
        if step is None:  # written, and mapped after one more item was appended
            blocks = list(column.blocks())
            column.append("meanwhile")
            column.swap_in(SavedTexts(blocks))
            expected.append("meanwhile")
        else:
            column.append(step)
            expected.append(step)
    assert list(column) == expected == column[:] == column.copy()[:] and len(column) == len(expected)
    if expected:
        assert column[-1] == expected[-1]
        assert list(SelectedTexts(column, np.array([len(expected) - 1, 0]))) == [expected[-1], expected[0]]


def test_full_text_blocks_are_reused_without_copying() -> None:
    column = Texts(SavedTexts(list(blocks_of(iter("abcde")))))
    column.append("f")
    first, last = column.blocks()
    assert first[0] is next(column.blocks())[0] is column._parts[0].arrays[0][0]
    assert SavedTexts([first, last])[5] == "f"


def test_forgotten_text_is_written_empty_and_other_texts_keep_their_rows() -> None:
    column = Texts(SavedTexts(list(blocks_of(iter("abcdef")))))
    column.append("g")
    forgotten = np.array([False, True, False, False, False, False, True])
    blocks = list(column.blocks(forgotten))
    assert list(Texts(SavedTexts(blocks))) == ["a", "", "c", "d", "e", "f", ""]
    assert blocks[1][1] is column._parts[0].arrays[1][1]
    column.swap_in(SavedTexts(blocks))
    assert next(column.blocks(forgotten))[1] is blocks[0][1]


ROWS = st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=3))


@given(st.lists(st.tuples(st.integers(0, 8), ROWS, st.booleans()), max_size=12))
def test_row_lists_return_the_last_list_set_for_each_row(steps: list[tuple[int, list[int] | None, bool]]) -> None:
    lists: RowLists[np.ndarray | None] = RowLists(empty=None)
    expected: list[list[int] | None] = []
    for row, found, written in steps:
        rows = None if found is None else np.array(found, np.int32)
        captured = lists.copy() if written else None
        if row < len(expected):
            lists[row], expected[row] = rows, found
        else:
            lists.grow(len(expected) + 1)
            lists[len(expected)] = rows
            expected.append(found)
        if captured is not None:
            lists.swap_in(captured.arrays(), captured)
    assert [None if rows is None else rows.tolist() for rows in lists] == expected
    arrays = lists.arrays()
    assert [
        None if none else rows.tolist()
        for none, rows in zip(arrays.none, np.split(arrays.rows, arrays.starts[1:-1]), strict=False)
    ] == expected
    chosen = np.arange(0, len(expected), 2)
    taken: RowLists[np.ndarray | None] = RowLists(arrays.select(chosen), None)
    assert [None if rows is None else rows.tolist() for rows in taken] == expected[::2]


TRIPLE = ("amy", "met", "bob")


def three_documents() -> list[Document]:
    return [
        Document("a", "folder", "A", metadata={"k": 1}, passages=(PassageRef("p0"), PassageRef("p1", {"page": 2}))),
        Document("b", "folder", passages=(PassageRef("p1", {}, (TRIPLE,)),)),
        Document("c", "kafka", state=State.FAILED, error="why", attempts=2, payload="{}"),
    ]


def test_saved_documents_load_unchanged_with_mapped_passages() -> None:
    documents = three_documents()
    texts = SavedTexts(list(blocks_of(passages_texts(documents))))
    again = shells(shell_table({document.uri: document for document in documents}), texts)
    assert again == documents and isinstance(again[0].passages, MappedRefs)
    assert [len(document.passages) for document in again] == [2, 1, 0]
    assert again[0].passages[1].location == {"page": 2} and list(passages_texts(again)) == list(
        passages_texts(documents)
    )
    map_passages(documents, texts)
    assert documents == three_documents() and isinstance(documents[1].passages, MappedRefs)


def test_holders_combine_saved_lists_with_later_changes() -> None:
    documents = {document.uri: document for document in three_documents()}
    holders = Holders()
    holders.grow(2)
    for document in documents.values():
        for row, id in enumerate(("p0", "p1")):
            if id in (found := supplied_by_passage(document)):
                holders[row] = holders[row] | {document.uri: found[id]}
    numbers = {uri: number for number, uri in enumerate(documents)}
    ids = Texts()
    ids.extend(["p0", "p1"])
    mapped = Holders(SavedHolders(holders.arrays(numbers), list(documents.values()), ids))
    for each in (holders, mapped):
        assert list(each) == [{"a": None}, {"a": None, "b": (TRIPLE,)}]
        assert each.sizes().tolist() == [1, 2]
        assert each.needing_extraction().tolist() == [0, 1]
        assert [rows.tolist() for rows in each.held_by({"b": documents["b"]})] == [[1], [1]]
    captured = mapped.copy()
    mapped[0] = {"a": None, "d": None}
    mapped.grow(3)
    mapped[2] = {"d": None}
    mapped.swap_in(SavedHolders(ListArrays(*_arrays(captured, numbers)), list(documents.values()), ids), captured)
    assert mapped[0] == {"a": None, "d": None} and mapped[1] == {"a": None, "b": (TRIPLE,)}
    assert list(mapped.select(np.array([1, 2]), SelectedTexts(["p0", "p1", "p2"], np.array([1, 2])))) == [
        {"a": None, "b": (TRIPLE,)},
        {"d": None},
    ]
    mapped[0] = {"d": ()}
    assert mapped.needing_extraction().tolist() == [1, 2], "an empty extraction is one"
    with pytest.raises(IndexError):
        mapped[3]


def _arrays(holders: Holders, numbers: dict[str, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lists = holders.arrays(numbers)
    return lists.starts, lists.rows, lists.none
