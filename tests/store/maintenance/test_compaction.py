"""The log is written into the tables as commits arrive, and the tables stay small."""

from pathlib import Path

import pytest

import store.maintenance.compaction as compaction
from store.export.json_lines import export_lines
from store.lance.layout import DATA, file_names, manifests, table_folder
from store.log.log_files import FOLDER, read_records
from tests.store import oracle
from tests.store.small_store import complete, extract, open_store


def test_the_log_is_flushed_and_the_tables_are_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
