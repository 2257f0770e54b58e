"""Automatic merging and pruning as commits arrive."""

from datetime import timedelta
from pathlib import Path

import pytest

import store.maintenance.compaction as compaction
from store.export.json_lines import export_lines
from tests.store import oracle
from tests.store.small_store import complete, extract, open_store


@pytest.mark.parametrize(("min_age", "again"), [(timedelta(0), True), (timedelta(hours=1), False)])
def test_versions_are_pruned_after_a_merge_but_not_more_often_than_they_grow_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, min_age: timedelta, again: bool
) -> None:
    pruned: list[timedelta] = []
    monkeypatch.setattr(compaction, "MERGE_AFTER_COMMITS", 3)
    monkeypatch.setattr(compaction, "PRUNE_MIN_AGE", min_age)
    monkeypatch.setattr(compaction.Compactor, "prune", lambda _, age: pruned.append(age))
    documents = {}
    with open_store(tmp_path / "store") as memory:
        for number in range(24):
            documents[f"d{number}"] = [("T", f"text {number}", None)]
            memory.commit(complete(memory, {f"d{number}": documents[f"d{number}"]}, []))
            if (merging := memory._compactor._merging) is not None:
                merging.result(60)
        assert memory._tables.fragments.count("documents") <= 4
        assert pruned
        assert (len(pruned) > 1) == again
        assert oracle.same(export_lines(memory.snapshot()), oracle.export(documents, extract)) is None
