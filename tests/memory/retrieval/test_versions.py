"""Versions of one text are one result, and the answer has as many results as were asked for."""

from pathlib import Path

from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.store import Store
from tests.memory.retrieval.test_near_duplicates import QUERY, others
from tests.memory.retrieval.test_reference import ENCODER, commit


def test_an_answer_is_not_shorter_because_passages_have_versions(tmp_path: Path) -> None:
    texts = others(60)
    second = {f"{uri}/v2": (title, f"{text} again", triples) for uri, (title, text, triples) in texts.items()}
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, texts | second)
        snapshot = memory.document_snapshot()
        found = retrieve(snapshot.snapshot, ENCODER, QUERY, "fused", 25, RetrievalSettings(), documents=snapshot)
    assert len(found.hits) == 25
    shown = {hit.id for hit in found.hits}
    merged = [version for hit in found.hits for version in hit.versions]
    assert len(merged) > 10
    assert shown.isdisjoint(merged)
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
