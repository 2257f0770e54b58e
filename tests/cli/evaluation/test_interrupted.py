"""An interrupted `eval --save` continues: the repeated command asks only for what is missing, and its result is the same."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cli.client.http import Client
from daemon.contract.answering.ask import AskResponse
from daemon.contract.choices import DocumentState
from daemon.contract.documents import DocumentEntry, DocumentList
from daemon.contract.evaluation import JudgeResponse
from daemon.contract.http.routes import Route
from daemon.contract.query import Tokens
from tests.cli.sample_answers import answer, passage, plain
from tests.cli.scripted_daemon import Here, ReceivedRequest, Reply, Scripted, problem

QUESTIONS = [
    {"_id": f"{at}", "question": f"Who built light {at}?", "documents": ["added:1"], "answer": "Ada Kerr"}
    for at in range(3)
]
COMMAND = ["eval", "q.json", "--k", "1", "--judge", "--compare", "dense,bm25", "--save", "run.json"]


@pytest.fixture
def model(scripted: Scripted, tmp_path: Path) -> "Model":
    (tmp_path / "q.json").write_text(json.dumps(QUESTIONS))
    return Model(scripted)


class Model:
    """A daemon whose answers differ from call to call, so that a repeated call would change the result.

    The connection breaks at the `breaks_at`th call of a model; the daemon refuses the calls of `refused`.
    """

    def __init__(self, scripted: Scripted) -> None:
        self.calls: list[str] = []
        self.breaks_at: int | None = None
        self.refused: set[str] = set()
        entry = DocumentEntry(uri="added:1", title="T", state=DocumentState.INDEXED, passages=1, attempts=0)
        scripted.answers |= {
            "GET /v1/documents": plain(DocumentList(documents=[entry])),
            "POST /v1/query": lambda asked: answer(passage(1, "T", "text", "added:1"), mode=asked.body["mode"]),
            "POST /v1/ask": self.reply,
            "POST /v1/judge": self.reply,
        }

    def reply(self, asked: ReceivedRequest) -> Reply | dict[str, Any]:
        call = json.dumps(asked.body, sort_keys=True)
        self.calls.append(call)
        if len(self.calls) == self.breaks_at:
            return Reply(pieces=[b"{", ConnectionError()])
        if asked.body["question"] in self.refused:
            return problem("upstream", 502, "The model failed.")
        tokens = Tokens(prompt=10 * len(self.calls), completion=len(self.calls))
        if asked.path == "/v1/judge":
            verdict: dict[str, Any] = {"score": len(self.calls)}
            if "other" in asked.body:
                verdict = {"better": len(self.calls) % 3}
            elif asked.body["criterion"] == "correctness":
                verdict = {"correct": bool(len(self.calls) % 2)}
            return plain(JudgeResponse(reason="So.", tokens=tokens, **verdict))
        text, question = f"Answer {len(self.calls)}.", asked.body["question"]
        made = AskResponse(question=question, answer=text, citations=[], steps=[], tokens=tokens, took_ms=1.0)
        return plain(made)


def test_repeated_evaluation_sends_only_missing_requests(here: Here, model: Model, tmp_path: Path) -> None:
    whole = here("--json", *COMMAND).json
    calls = len(model.calls)
    # Each of 3 questions in 2 rows: an answer and 3 verdicts; then 2 criteria in 2 orders for each question.
    assert calls == 3 * 2 * 4 + 3 * 2 * 2
    assert json.loads((tmp_path / "run.json").read_text()) == whole
    assert not (tmp_path / "run.json.part").exists()

    for breaks_at in (1, 6, calls):
        (tmp_path / "run.json").unlink()
        model.calls, model.breaks_at = [], breaks_at
        assert here(*COMMAND).code != 0
        assert not (tmp_path / "run.json").exists()
        # kill -9 while a line is written.
        with (tmp_path / "run.json.part").open("a") as journal:
            journal.write('{"request": "0')
        model.calls, model.breaks_at = model.calls[:-1], None
        ran = here("--json", *COMMAND)
        assert ran.json == whole
        assert "that an interrupted evaluation kept in run.json.part" in ran.err
        assert len(model.calls) == calls and max(Counter(model.calls).values()) == 1
        assert not (tmp_path / "run.json.part").exists()


def test_requests_that_may_call_the_model_have_its_timeout(
    here: Here, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: dict[str, set[float]] = {}
    request = Client._request

    def watched(client: Client, method: str, path: str, accept: str, content: Any, timeout_s: float) -> Any:
        limits.setdefault(path, set()).add(timeout_s)
        return request(client, method, path, accept, content, timeout_s)

    monkeypatch.setattr(Client, "_request", watched)
    assert here("eval", "q.json", "--k", "1", "--judge", "--compare", "fused,hipporag2", "--save", "run.json").code == 0
    assert here("query", "Who built light 1?", "--mode", "fused").code == 0
    assert [limits[path] for path in (Route.QUERY, Route.ASK, Route.JUDGE)] == [{900.0}] * 3


def test_repeated_evaluation_retries_failed_requests(here: Here, model: Model, tmp_path: Path) -> None:
    model.refused = {str(QUESTIONS[0]["question"])}
    model.breaks_at = 6
    assert here(*COMMAND).code != 0
    model.calls, model.refused, model.breaks_at = [], set(), None
    scores = here("--json", *COMMAND).json["modes"][0]["questions"]
    assert [each.get("error") for each in scores] == [None, None, None]


def test_invalid_evaluation_journal_is_an_error_and_kept(here: Here, model: Model, tmp_path: Path) -> None:
    (tmp_path / "run.json.part").write_text("[1]\n")
    ran = here(*COMMAND)
    assert ran.code == 1 and "run.json.part is not the journal of an evaluation. Delete it" in " ".join(ran.err.split())
    assert (tmp_path / "run.json.part").read_text() == "[1]\n" and not model.calls
