"""Copies of the live index are whole while folds, checkpoints and commits change it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any
from unittest import mock

import pytest

from store.export.json_lines import export_lines
from store.index.append_only_arrays import Counts, GrowableArray
from store.index.columns import row_lists
from store.index.columns.hashed_rows import HashedRows
from store.index.columns.holders import StoredDocuments
from store.index.columns.row_lists import ChangedRows
from store.index.columns.texts import Texts
from store.index.delta_csr import LiveMatrix
from store.index.live_index import LiveIndex
from store.index.synonyms.sketch_index import SketchIndex
from store.store import Store
from store.types import Document
from tests.store.small_store import complete, numbered_documents, open_store

WAIT_S = 0.5
"""Time for which an interrupted copy waits. Long enough for the other thread if no lock stops it."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "store") as opened:
        for last in range(4, 16, 4):
            opened.commit(complete(opened, numbered_documents(last - 4, last), []))
        yield opened


@contextmanager
def interrupted(of: Any, name: str, copied: object, work: Callable[[], object], by: tuple[Any, str]) -> Iterator[None]:
    """Runs `work` in a thread when the function copies `copied` for the first time in the block: until `by`, a method that
    replaces data, has run once. `work` goes on after the block."""
    step, replace, replaced, copied_all = getattr(of, name), getattr(*by), Event(), Event()
    threads: list[Thread] = []

    def stepped(given: Any) -> Any:
        done = step(given)
        if given is copied and not threads:
            threads.append(Thread(target=work))
            threads[0].start()
            replaced.wait(WAIT_S)
        return done

    def replacing(*given: Any) -> None:
        replace(*given)
        replaced.set()
        copied_all.wait(60)

    with mock.patch.object(of, name, stepped), mock.patch.object(*by, replacing):
        yield
        assert threads, "nothing was copied"
        copied_all.set()
        threads[0].join(60)
    assert replaced.is_set()


def not_first(document: Document) -> bool:
    return document.uri != "d0"


def test_a_scope_is_whole_if_a_fold_ends_while_the_index_is_copied(store: Store) -> None:
    rows = store._index.matrices["relation"]._rows
    fold = interrupted(GrowableArray, "copy", rows, store.fold, (LiveMatrix, "swap_in_fold"))
    with fold:
        found = list(export_lines(store.scoped("during", not_first).snapshot))
    assert store._index.matrices["relation"]._rows is not rows
    assert found == list(export_lines(store.scoped("after", not_first).snapshot))


def test_documents_are_whole_if_a_checkpoint_is_mapped_while_they_are_copied(store: Store) -> None:
    holders = store._index.holders
    expected = {passage.id: store.documents_with_passage(passage.id) for passage in store._index.passages}
    with interrupted(row_lists, "copy", holders, store.write_checkpoint, (StoredDocuments, "map_saved")):
        found = store.document_snapshot()
    assert not holders._changed
    assert {id: found.documents_with_passage(id) for id in expected} == expected


CHANGES: Sequence[tuple[Any, str]] = (
    (LiveIndex, "apply"),
    (LiveIndex, "forget"),
    (LiveMatrix, "add"),
    (LiveMatrix, "swap_in"),
    (HashedRows, "swap_in_fold"),
    (ChangedRows, "swap_in"),
    (Texts, "swap_in"),
    (SketchIndex, "swap_in"),
)
COPIES: Sequence[tuple[Any, str]] = (
    (LiveIndex, "copy"),
    (LiveMatrix, "copy"),
    (HashedRows, "copy"),
    (ChangedRows, "copy"),
    (Texts, "copy"),
    (SketchIndex, "copy"),
    (Counts, "copy"),
)


def test_the_index_is_changed_under_both_locks_and_copied_under_one_of_them(store: Store) -> None:
    index = store._index
    texts = (index.passages.ids, index.passages.titles, index.passages.texts, index.phrases, index.predicates)
    columns = (*texts, index.names.texts, index.holders, index.extracted, *index.counts.values())
    live = {id(each) for each in (index, *index.foldable(), *columns)}
    seen: set[tuple[str, str]] = set()

    def checked(of: Any, name: str, needed: Callable[[Sequence[bool]], bool]) -> Any:
        step = getattr(of, name)

        def stepped(self: Any, *given: Any) -> Any:
            if id(self) in live:
                seen.add((of.__name__, name))
                assert needed((store._write_lock.is_held, store._live._index_lock.locked())), (of, name)
            return step(self, *given)

        return mock.patch.object(of, name, stepped)

    with ExitStack() as patches:
        for of, name in CHANGES:
            patches.enter_context(checked(of, name, all))
        for of, name in COPIES:
            patches.enter_context(checked(of, name, any))
        store.scoped("scope", not_first)
        store.commit(complete(store, numbered_documents(20, 22), ["d0", "d3"]))
        store.scoped("scope", not_first)
        store.snapshot_at(store.snapshot().commit - 1)
        store.document_snapshot()
        store.purge(timedelta(0))
        store.fold()
        store.write_checkpoint()
    assert seen == {(of.__name__, name) for of, name in (*CHANGES, *COPIES)}
