"""Chinese names of two characters have synonyms, also in a store whose earlier release gave them none."""

import json

import store.change.synonym_change
import store.index.live_index
from store.export.json_lines import export_lines
from store.types import SynonymRule
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import complete, open_store

NAMES = ["北京", "北京市", "北京城", "上海", "上海港", "東京", "東京都", "am", "ama", "水", "水a"]


def documents():
    triples = tuple((name, "is", NAMES[i - 1]) for i, name in enumerate(NAMES))
    return {"d": [("T", "text 1", triples)], "e": [("T", "text 2", triples[::2])]}


def edges(lines):
    return {(line["source"], line["target"]) for line in lines if line.get("type") == "synonym"}


def test_a_store_of_an_earlier_release_gets_them_as_it_is_opened(tmp_path, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr(SynonymRule, "VERSION", SynonymRule.VERSION - 1)
        for module in (store.index.live_index, store.change.synonym_change):
            earlier.setattr(module, "linkable", lambda phrase: sum(map(str.isalnum, phrase)) > 2)
        with open_store(tmp_path) as memory:
            memory.commit(complete(memory, documents(), []))
            before = edges(map(json.loads, export_lines(memory.snapshot())))
    for path in tmp_path.glob("snapshot-*"):
        (path / "manifest.json").write_text("{}")  # as a snapshot of another format is: not used
    expected = oracle.export(documents(), lambda *_: [])
    assert ("北京", "北京市") in edges(expected) - before
    with open_store(tmp_path) as memory:
        assert oracle.same(export_lines(memory.snapshot()), expected) is None
        assert verify(memory).problems == []
        commit = memory.snapshot().commit
    with open_store(tmp_path) as memory:
        assert memory.snapshot().commit == commit
