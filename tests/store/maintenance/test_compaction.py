"""The log is written into the tables as commits arrive, and the tables stay small."""

import re
import time
from pathlib import Path
from threading import Thread
from unittest import mock

import pytest

import store.maintenance.compaction as compaction
from store.export.json_lines import export_lines
from store.index.delta_csr import LiveMatrix
from store.lance.layout import DATA, file_names, manifests, table_folder
from store.lance.table_writer import TableWriter
from store.log.write_ahead_log import FOLDER, read_records
from tests.store import oracle
from tests.store.small_store import complete, extract, numbered_documents, open_store


def test_compaction_flushes_the_log_and_limits_table_fragments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FLUSH_COMMITS", 3)
    monkeypatch.setattr(compaction, "MANY_FRAGMENTS", 4)
    documents = {}
    folder = tmp_path / "store"
    with open_store(folder) as memory:
        for number in range(24):
            documents[f"d{number}"] = [("T", f"text {number}", None)]
            memory.commit(complete(memory, {f"d{number}": documents[f"d{number}"]}, []))
            if (flushing := memory._compactor._flushing) is not None:
                flushing.result(60)
        assert memory._tables.fragment_count("documents") <= 4
        assert len(memory._tables.pending) < 3
        assert len(read_records(folder)) == len(memory._tables.pending)
        assert oracle.same(export_lines(memory.snapshot()), oracle.export(documents, extract)) is None
        memory.compact()
        assert memory._tables.fragment_count("documents") == 1
        place = table_folder(folder, "documents")
        assert len(manifests(place)) == len(file_names(place)[DATA]) == 1
        assert not list((folder / FOLDER).glob("*.records"))
        assert oracle.same(export_lines(memory.snapshot()), oracle.export(documents, extract)) is None


def test_a_commit_succeeds_if_no_thread_can_be_started_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "FLUSH_COMMITS", 1)
    monkeypatch.setattr(LiveMatrix, "due", True)
    with open_store(tmp_path) as memory:
        first = memory.snapshot().commit
        batches = [complete(memory, numbered_documents(number, number + 1), []) for number in range(3)]
        with mock.patch.object(Thread, "start", side_effect=RuntimeError("can't start new thread")):
            assert memory.commit(batches[0]).seq == first + 1
        memory.commit(batches[1])
        memory._compactor._flushing.result(60)
        memory._delta_merger._job.result(60)
        assert not memory._tables.pending
        with memory.maintenance_paused():
            memory.close()  # leaves it open
            assert memory.commit(batches[2]).seq == first + 3


def rewrites_of_documents(folder: Path, rows: int, flushes: int) -> tuple[int, int]:
    """Flushes one document at a time into a rewritten table of `rows` documents; returns the number of rewrites, and of
    fragments."""
    with open_store(folder) as memory:
        memory.commit(complete(memory, numbered_documents(0, rows), []))
        memory.compact(0)
        with mock.patch.object(TableWriter, "optimize", autospec=True, side_effect=TableWriter.optimize) as optimize:
            for number in range(rows, rows + flushes):
                memory.commit(complete(memory, numbered_documents(number, number + 1), []))
                memory.compact_when_due()
        rewritten = [call.args[1] for call in optimize.call_args_list]
        return rewritten.count("documents"), memory._tables.fragment_count("documents")


def test_few_new_rows_do_not_rewrite_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MANY_FRAGMENTS", 3)
    assert rewrites_of_documents(tmp_path / "share", 20, 4) == (0, 5)  # 4 of 20 rows are less than a quarter
    assert rewrites_of_documents(tmp_path / "due", 20, 5) == (1, 1)
    monkeypatch.setattr(compaction, "MAX_FRAGMENTS", 4)
    assert rewrites_of_documents(tmp_path / "most", 20, 4) == (1, 2)


def test_a_failing_flush_is_reported_and_tried_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(compaction, "FLUSH_COMMITS", 1)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with open_store(tmp_path) as memory:

        def commit(number: int) -> None:
            memory.commit(complete(memory, numbered_documents(number, number + 1), []))
            if (flushing := memory._compactor._flushing) is not None:
                flushing.exception(60)

        tries = []
        no_space = OSError(28, "No space left on device")
        with mock.patch.object(TableWriter, "add_commits", side_effect=no_space) as write:
            for number in range(16):
                commit(number)
                tries.append(write.call_count)
                now += 1
        assert tries == [1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4]
        assert re.fullmatch(
            r"the log \(\d\.\d MB, 16 commits\) cannot be written into the tables: .*No space left on device",
            memory.flush_trouble or "",
        )
        assert len(list((tmp_path / FOLDER).glob("*.records"))) <= 5  # not one for each commit
        now += compaction.MAX_RETRY_S
        commit(16)
        assert memory.flush_trouble is None
        assert not memory._tables.pending
