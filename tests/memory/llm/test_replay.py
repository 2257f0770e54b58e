"""A model that answers as GPT-3.5 once did, with its flaws, gives the memory that importing its answers gives, without the
triples that have nothing to do with the passage."""

import json
from pathlib import Path

import pytest

from tests.memory.llm.model_server import Call, Text
from tests.memory.llm.recorded_answers import grounded_documents

RECORDED = Path(__file__).parents[4] / "shared" / "data" / "musique" / "openie.json"
EVERY = 13
FLAWED = 12
pytestmark = [
    pytest.mark.daemon,
    pytest.mark.shared,
    pytest.mark.skipif(not RECORDED.exists(), reason="needs ../shared/data"),
]


def some_passages():
    """Every thirteenth passage and a dozen whose triples have other than three parts."""
    docs = json.loads(RECORDED.read_text())["docs"]
    flawed = [doc for doc in docs if any(len(triple) != 3 for triple in doc["extracted_triples"])]
    return list({doc["passage"]: doc for doc in [*docs[::EVERY], *flawed[:FLAWED]]}.values())


def replay(docs):
    """The recorded answers, by what is quoted of a passage."""
    known = {" ".join(doc["passage"].split()): doc for doc in docs}

    def script(call: Call):
        if call.purpose == "probe":
            return Text("OK")
        doc = known[" ".join(call.passage.split())]
        if call.purpose == "entities":
            return {"named_entities": doc["extracted_entities"]}
        return {"triples": doc["extracted_triples"]}

    return script


def test_extraction_of_recorded_answers_equals_their_import(serve, hippo, tmp_path):
    docs = some_passages()
    server = serve(replay(docs))
    recorded = tmp_path / "openie.json"
    recorded.write_text(json.dumps({"docs": grounded_documents(docs)}))
    imported = hippo(server, "imported", openie={"backend": "rules"}).start()
    assert imported.ctl_json("import", recorded)["passages"] == len(docs)
    expected = imported.export()
    imported.stop()
    assert server.calls == []

    extracted = hippo(server, "extracted", openie={"concurrency": 16}, passages={"max_tokens": 8192, "min_tokens": 1})
    extracted.start()
    titled = [doc["passage"].partition("\n") for doc in docs]
    extracted.add(*[{"id": str(n), "title": title, "text": text} for n, (title, _, text) in enumerate(titled)])
    status = extracted.wait()
    assert (status["failed"], status["pending"]) == (0, 0)
    assert extracted.export() == expected
    assert extracted.metric("hippod_triples_dropped_total", reason="parts") > 0
    assert set(server.answered.values()) == {1}
