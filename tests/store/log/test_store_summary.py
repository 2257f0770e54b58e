"""A summary of a log shows what an opening would, also after an interrupted change and during a flush."""

from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from store.errors import StoreDamaged
from store.lance.tables import read_unopened
from store.log import store_summary
from store.log.mark import NAME as MARK
from store.log.store_summary import summarize_store, summary_of_store
from store.log.write_ahead_log import FOLDER
from tests.store.small_store import complete, numbered_documents, open_store


def test_a_change_that_ended_before_the_mark_is_not_in_the_summary(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 2), []))
        other = {"encoder": "other", "dim": 8}
        with (
            mock.patch("store.log.commits.write_mark", side_effect=KeyboardInterrupt),
            mock.patch.object(store._commits, "_undo"),
            pytest.raises(KeyboardInterrupt),
            store._commits.changing() as writer,
        ):
            store._commits.add_commit(writer, "reencode", other)
    found = summarize_store(tmp_path)
    assert (found.encoder.name, found.commit) == ("oracle", 2)


def test_a_flush_during_the_summary_loses_no_commit(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.commit(complete(store, numbered_documents(0, 2), []))
        read = read_unopened

        def flushed_after(*given: Any) -> pa.Table:
            rows = read(*given)
            with mock.patch.object(store_summary, "read_unopened", read):
                if store.unflushed_commits():
                    store.compact(10**6)
            return rows

        with mock.patch.object(store_summary, "read_unopened", flushed_after):
            assert summarize_store(tmp_path).commit == 2


def test_a_damaged_mark_has_no_summary(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    (tmp_path / FOLDER / MARK).write_text("{}")
    with pytest.raises(StoreDamaged):
        summarize_store(tmp_path)
    assert summary_of_store(tmp_path) is None
