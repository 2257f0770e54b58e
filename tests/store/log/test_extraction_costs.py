"""The costs of extraction are known over the life of a store, despite deletions and purges."""

import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest

import store.maintenance.erasure as erasure
import store.maintenance.retention as retention
from store.lance.tables import Tables
from store.types import Batch, Extraction, ExtractionOutcome, passage_id
from tests.store.small_store import complete, extract, open_store, reading


def read(store, documents, removed=(), again=(), name="model", tokens=10):
    """Commits the results of the extractor `name`; each extraction costs `tokens` prompt tokens and one completion token."""
    batch = complete(store, documents, list(removed), lambda title, text: reading(title, text, tokens), again)
    found = tuple(
        replace(each, extractor=name, prompt_tokens=tokens, completion_tokens=1) for each in batch.extractions
    )
    return store.commit(replace(batch, extractions=found))


def purge(store):
    assert store.purge(timedelta(0)) > 0


@pytest.mark.slow
def test_costs_of_purged_extractions_stay_in_the_total(tmp_path, monkeypatch):
    monkeypatch.setattr(retention, "PURGE_SLICE_ROWS", 3)
    monkeypatch.setattr(erasure, "TRIM_MIN_ROWS", 1)
    with open_store(tmp_path) as store:
        documents = {f"d{i}": [("T", f"text {i}", None)] for i in range(8)}
        read(store, documents)
        assert store.extraction_costs() == {"model": (8, 80, 8)}
        read(store, {}, [f"d{i}" for i in range(5)])  # deleted
        read(store, {}, again=[("T", "text 6")], name="better", tokens=7)  # extracted again
        expected = {"better": (1, 7, 1), "model": (8, 80, 8)}
        assert store.extraction_costs() == expected
        purge(store)
        assert store._tables.rows("extractions") == 3
        assert store.extraction_costs() == expected
        read(store, {"d0": documents["d0"]})  # added again, and extracted once more
        expected["model"] = (9, 90, 9)
        assert store.extraction_costs() == expected
        read(store, {}, ["d7"])
        purge(store)
        time.sleep(0.01)
        store.purge(timedelta(0))  # which trims the log rows of the first purge
        assert store.extraction_costs() == expected
    with open_store(tmp_path) as store:
        assert store.extraction_costs() == expected
        store.compact()
        assert store.extraction_costs() == expected


@pytest.mark.slow
def test_costs_that_are_read_while_a_purge_becomes_visible_count_once(tmp_path, monkeypatch):
    publish, counted, threads = Tables.publish, [], []
    with open_store(tmp_path) as store:
        read(store, {f"d{i}": [("T", f"text {i}", None)] for i in range(4)})
        read(store, {}, ["d0", "d1"])
        expected = store.extraction_costs()

        def publish_and_count(tables, *given):
            publish(tables, *given)
            thread = threading.Thread(target=lambda: counted.append(store.extraction_costs()))
            thread.start()
            thread.join(0.1)  # the purge's commit, which has the deleted rows' costs, is not the last one yet
            threads.append(thread)

        monkeypatch.setattr(Tables, "publish", publish_and_count)
        purge(store)
        for thread in threads:
            thread.join()
    assert counted == [expected] * len(threads) != []


def ends(*_):
    raise KeyboardInterrupt


@pytest.mark.slow
def test_a_purge_that_ended_in_the_middle_counts_nothing_twice(tmp_path, monkeypatch):
    with open_store(tmp_path) as store:
        read(store, {f"d{i}": [("T", f"text {i}", None)] for i in range(4)})
        read(store, {}, ["d0", "d1"])
        add_commit = store._commits.add_commit

        def dies(writer, kind, *rest):
            if kind == "purge":
                monkeypatch.setattr(store._commits, "_write_mark", ends)
            add_commit(writer, kind, *rest)

        monkeypatch.setattr(store._commits, "add_commit", dies)
        with pytest.raises(KeyboardInterrupt):
            store.purge(timedelta(0))
    with open_store(tmp_path) as store:
        assert store.extraction_costs() == {"model": (4, 40, 4)}
        purge(store)
        assert store.extraction_costs() == {"model": (4, 40, 4)}
        assert store._tables.rows("extractions") == 2


def test_extraction_without_tokens_is_counted_with_zero_tokens(tmp_path):
    with open_store(tmp_path) as store:
        store.commit(complete(store, {"a": [("T", "text 1", None)]}, [], extract))
        assert store.extraction_costs() == {"oracle": (1, 0, 0)}


def test_current_passages_are_counted_by_extractor(tmp_path):
    with open_store(tmp_path) as store:
        read(store, {f"d{i}": [("T", f"text {i}", None)] for i in range(4)}, name="rules/1")
        read(store, {}, again=[("T", "text 1")], name="rules/2")
        read(store, {}, removed=["d0"])
        read(store, {"own": [("T", "text 9", (("amb", "is", "bob"),))]})
        failed = Extraction(
            passage_id("T", "text 2"), "rules/2", status=ExtractionOutcome.FAILED, attempts=1, error="no"
        )
        store.commit(Batch(extractions=(failed,)))
        assert store.passages_by_extractor() == {"none": 1, "rules/1": 1, "rules/2": 1, "supplied": 1}
        assert store.snapshot().living_passages == 4


def test_durations_are_summed_by_extractor_without_failures(tmp_path):
    with open_store(tmp_path) as store:
        read(store, {f"d{i}": [("T", f"text {i}", None)] for i in range(3)}, name="rules/1")
        ids = [passage_id("T", f"text {i}") for i in range(3)]
        store.commit(
            Batch(extractions=(Extraction(ids[0], "rules/2", took_ms=40.0), Extraction(ids[1], "m", took_ms=9.0)))
        )
        store.commit(Batch(extractions=(Extraction(ids[1], "rules/2", took_ms=20.0),)))
        failed = Extraction(ids[1], "rules/2", took_ms=5.0, status=ExtractionOutcome.FAILED, attempts=1, error="no")
        store.commit(Batch(extractions=(failed,)))
        times = store.extraction_times()
        assert (times["rules/2"], times["m"], "other" in times) == ((2, 60.0), (1, 9.0), False)
