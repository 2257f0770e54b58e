"""`eval --continual` asks the first segment's questions after each, in several modes side by side, for recall and F1."""

import json
from typing import Any

import pytest

from tests.daemon.services.answering.conftest import Asking
from tests.memory.answering.working_memory.toy import QUESTION
from tests.memory.llm.model_server import obedient

pytestmark = pytest.mark.daemon

HERON = "Who keeps the heron of Skell?"
LATER = {"id": "Heron", "title": "Heron", "text": f"Who keeps the heron? {HERON}"}


def test_continual_evaluation_reports_recall_and_f1_per_segment_and_mode(asking: Asking) -> None:
    """A document with more of the question's words takes the place of the gold passage, which alone is read."""
    daemon = asking.daemon
    first = {"id": "Keeper", "title": "Keeper", "text": "Marit keeps the heron of Skell."}
    daemon.add(first)
    daemon.wait()
    daemon.add(LATER)
    daemon.wait()
    scope = ["--in", "added:Keeper", "--in", "added:Heron"]
    questions = [
        {"question": HERON, "documents": ["added:Keeper"], "answer": "Marit Aas"},
        {"question": QUESTION, "documents": ["added:Heron"], "answer": "so"},
        {"question": "Unrelated?", "answer": "so"},
    ]
    (daemon.home / "grown.json").write_text(json.dumps(questions))

    def script(call: Any) -> Any:
        if call.purpose != "answer":
            return obedient(call)
        short = "Marit" if "Marit" in call.passage else "nobody knows"
        return {"found": True, "sentences": [{"text": "So.", "sources": []}], "short": short}

    asking.model.script = script
    try:
        arguments = ["eval", "grown.json", "--continual", "2", "--compare", "bm25,none", "--answers", *scope]
        whole = daemon.ctl_json(*arguments, "--k", "1", "--read", "1")
        assert whole["n"] == 1, "only the first question was answered by the first segment; the third has no gold"
        rows = [
            [
                (each["mode"], each["recall"].get("1"), each["answers"]["em"], each["answers"]["f1"])
                for each in row["modes"]
            ]
            for row in whole["segments"]
        ]
        # "marit" against "marit aas": F1 2/3. Without the passage "nobody knows" shares no word: 0.
        assert rows[0] == [("bm25", 1.0, 0.0, 0.6667), ("none", None, 0.0, 0.0)]
        assert rows[1] == [("bm25", 0.0, 0.0, 0.0), ("none", None, 0.0, 0.0)]
        assert [(row["documents"], row["passages"]) for row in whole["segments"]] == [(1, 1), (2, 2)]
        assert whole["modes"][0]["recall"] == {"1": 0.0}
        shown = daemon.ctl(*arguments, "--k", "1", "--read", "1").out.splitlines()
        assert shown[0].split() == ["segment", "documents", "passages", "mode", "recall@1", "all@1", "EM", "F1"]
        assert shown[1].split() == ["1", "1", "1", "bm25", "1.0000", "1.0000", "0.0000", "0.6667"]
    finally:
        daemon.ask("DELETE", "/v1/documents", json={"uris": ["added:Keeper", "added:Heron"]})
        daemon.wait()
