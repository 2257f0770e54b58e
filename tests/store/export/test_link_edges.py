"""Exporting links parses each document's passages once."""

from store.export.json_lines import export_lines
from store.lance.schema import documents as schema
from tests.store.small_store import complete, open_store


def test_exporting_links_parses_a_documents_passages_once(tmp_path, monkeypatch):
    texts = [("T", f"text {i}", None) for i in range(60)]
    with open_store(tmp_path) as memory:
        memory.commit(complete(memory, {"file:///a": texts, "file:///b": texts[:1]}, []))
        expected = list(export_lines(memory.snapshot(), memory.document_snapshot()))
        assert sum('"type": "link"' in line for line in expected) > 20
        memory.write_checkpoint()
    parsed = []
    parse = schema.passage_refs

    def counted(text, *more):
        parsed.append(len(text))
        return parse(text, *more)

    with open_store(tmp_path) as memory:
        monkeypatch.setattr(schema, "passage_refs", counted)
        assert list(export_lines(memory.snapshot(), memory.document_snapshot())) == expected
        assert parsed.count(max(parsed)) == 1 and len(parsed) <= 3
