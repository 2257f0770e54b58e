"""Over the socket: every retrieval mode, its settings, its explanations, and earlier commits."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daemon.contract.query import Mode
from tests.e2e.real_hippod import Daemon

pytestmark = pytest.mark.daemon

FACTS = [
    ("Heron gauge", "Casimir Dorn built the Heron gauge in Tollmin.", [["Heron gauge", "built by", "Casimir Dorn"]]),
    ("Casimir Dorn", "Casimir Dorn was trained by Ludo Pasternek.", [["Casimir Dorn", "trained by", "Ludo Pasternek"]]),
    ("Ludo Pasternek", "Ludo Pasternek came from Karrow.", [["Ludo Pasternek", "came from", "Karrow"]]),
    ("Tea", "Tea is made of leaves and hot water.", [["Tea", "made of", "leaves"]]),
    ("Harbour", "The harbour of Tollmin freezes in winter.", [["harbour", "lies in", "Tollmin"]]),
]
QUESTION = "Who trained the builder of the Heron gauge?"


@pytest.fixture(scope="module")
def lab(live: Daemon) -> Iterator[Daemon]:
    """Yields a daemon with the facts, each added in a separate commit."""
    for number, (title, text, triples) in enumerate(FACTS):
        live.add({"id": f"fact{number}", "title": title, "text": text, "triples": triples})
        live.wait()
    yield live


@pytest.mark.parametrize("mode", [mode.value for mode in Mode])
def test_every_mode_of_the_contract_answers_and_explains_itself(lab: Daemon, mode: str) -> None:
    answer = lab.ctl_json("query", QUESTION, "--mode", mode, "-k", "2", "--explain")
    assert answer["mode"] == mode
    reasons = answer["explain"]["passages"]
    assert [reason["id"] for reason in reasons] == [passage["id"] for passage in answer["passages"]]
    assert answer["explain"]["stages_ms"]
    if mode in ("dense", "bm25"):
        assert all("own_share" not in reason for reason in reasons)
        return
    for reason in reasons:
        shares = [seed["share"] for seed in reason["seeds"]]
        assert reason["own_share"] + reason["other_share"] + sum(shares) == pytest.approx(1.0)
        assert reason["path"]["steps"][-1]["id"] == reason["id"]
        supporting = [
            passage for step in reason["path"]["steps"] for t in step.get("triples", []) for passage in t["passages"]
        ]
        assert all(passage["document"].startswith("added:") for passage in supporting)
    plain = lab.ctl_json("query", QUESTION, "--mode", mode, "-k", "2")
    assert plain["passages"] == answer["passages"]
    assert "explain" not in plain


def test_explain_prints_reason_and_path_of_a_passage(lab: Daemon) -> None:
    shown = lab.ctl("query", QUESTION, "--explain")
    assert shown.code == 0
    assert "why   similarity" in shown.out
    assert "path  " in shown.out


def test_settings_change_one_query(lab: Daemon) -> None:
    def triples(*arguments: str) -> int:
        return len(lab.ctl_json("query", QUESTION, "--mode", "hipporag2", *arguments)["triples"])

    assert triples("--set", "top_triples=2") == 2
    assert triples() == 5
    ablated = lab.ctl_json("query", QUESTION, "--mode", "hipporag2", "--set", "passage_nodes=false", "-k", "1")
    assert (
        ablated["passages"][0]["score"]
        != lab.ctl_json("query", QUESTION, "--mode", "hipporag2")["passages"][0]["score"]
    )
    refused = lab.http.post("/v1/query", json={"query": "x", "settings": {"damping": 2}})
    assert refused.status_code == 422
    assert "damping" in refused.json()["errors"][0]["field"]


def test_query_with_as_of_returns_only_documents_committed_by_then(lab: Daemon) -> None:
    entries = sorted(lab.documents().values(), key=lambda entry: entry["committed_at"])
    second = entries[1]["committed_at"]
    body = {"query": QUESTION, "mode": "dense", "k": 10, "as_of": second}
    assert len(lab.ask("POST", "/v1/query", json=body)["passages"]) in (1, 2)
    now = datetime.now(UTC).isoformat()
    assert len(lab.ask("POST", "/v1/query", json=body | {"as_of": now})["passages"]) == len(FACTS)
    refused = lab.http.post("/v1/query", json=body | {"as_of": "2001-01-01T00:00:00Z"})
    assert refused.status_code == 409
    assert refused.json()["errors"][0]["field"] == "as_of"


def test_query_of_an_earlier_commit_returns_a_document_removed_since(lab: Daemon) -> None:
    lab.add({"id": "gone", "title": "Sextant", "text": "The sextant of Orm hangs in the hall.", "triples": []})
    lab.wait()
    question = {"query": "Where does the sextant of Orm hang?", "mode": "dense", "k": 1, "explain": True}
    before = lab.ask("POST", "/v1/query", json=question)
    lab.ctl("rm", "added:gone")
    lab.wait()
    then = lab.ask("POST", "/v1/query", json=question | {"as_of": before["commit"]})
    assert [passage["document"] for passage in then["passages"]] == ["added:gone"]
    assert then["passages"] == before["passages"]
    drawn = lab.ask("POST", "/v1/graph", json={"query": question["query"], "mode": "dense", "as_of": before["commit"]})
    assert "added:gone" in {node.get("document") for node in drawn["nodes"]}
    now = lab.ask("POST", "/v1/query", json=question | {"k": 10})["passages"]
    assert all(passage["document"] and passage["document"] != "added:gone" for passage in now)


def test_continual_evaluation_reports_recall_for_each_segment(lab: Daemon, tmp_path: Path) -> None:
    questions = [
        {"question": "Who built the Heron gauge?", "documents": ["added:fact0"]},
        {"question": "What is tea made of?", "documents": ["added:fact3"]},
    ]
    (tmp_path / "q.json").write_text(json.dumps(questions))
    whole = lab.ctl_json("eval", tmp_path / "q.json", "--continual", "5", "--k", "1,5")
    assert whole["n"] == 1
    assert [row["passages"] for row in whole["segments"]] == [1, 2, 3, 4, 5]
    assert whole["segments"][0]["recall"] == {"1": 1.0, "5": 1.0}
    assert whole["recall"]["5"] == 1.0


def test_fused_mode_merges_versions_of_a_text_into_the_newest(lab: Daemon) -> None:
    text = (
        "The ferry from Tollmin to Karrow leaves at {hour} every morning, takes a cart and costs {price} marks a head."
    )
    prices = {"v2": 14, "v3": 17, "v1": 12}
    for version, price in prices.items():
        published = f"202{version[1]}-03-01T00:00:00Z"
        document = {"id": f"ferry-{version}", "title": "Ferry", "text": text.format(hour=6, price=price)}
        lab.add({**document, "published_at": published})
    lab.add(
        {
            "id": "ferry-copy",
            "title": "Ferry",
            "text": text.format(hour=6, price=12),
            "published_at": "2021-03-01T00:00:00Z",
        }
    )
    lab.wait()
    question = "What does the ferry from Tollmin to Karrow cost?"
    first, *others = lab.ctl_json("query", question)["passages"]
    assert first["document"] == "added:ferry-v3"
    assert first["also_in"] == ["added:ferry-v2", "added:ferry-copy", "added:ferry-v1"]
    assert first["conflicting_values"] == ["12", "14", "17"]
    assert not any("ferry" in passage["document"] for passage in others)
    assert "versions differ in 12, 14, 17" in lab.ctl("query", question).out
    separate = lab.ctl_json("query", question, "--mode", "hipporag2")["passages"]
    assert sum("ferry" in passage["document"] for passage in separate) == 3, "only fused merges versions"
