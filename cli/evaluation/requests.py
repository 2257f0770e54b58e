"""What an evaluation asks of the daemon, as requests to its socket."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cli.client.http import Client
from cli.client.typed_answers import parse_answer
from cli.evaluation.questions import EvalQuestion
from daemon.contract.answering.ask import AskResponse
from daemon.contract.answering.judge import ANSWER_CHARS_MAX, REFERENCES_MAX, Criterion, JudgeResponse
from daemon.contract.choices import NO_RETRIEVAL
from daemon.contract.http.client import ANSWER_TIMEOUT_S
from daemon.contract.http.routes import Route, document_path
from daemon.contract.query import QueryResponse, RankedPassage
from daemon.contract.show import ShowDocument

SHOWN_PASSAGES_LIMIT = 10_000
"""Passages of one document that are looked at."""


@dataclass(frozen=True, slots=True)
class EvalRequests:
    """`retrieval`: filter, settings, scope and as_of, as fields of a request. `answering`: steps, length and the like.

    `depth`: how many passages a query finds. `read`: how many an answer reads. `on_answer` is called after each request.
    """

    client: Client
    depth: int
    read: int
    timeout_s: float
    """Of an answer, and of a query about an earlier memory, which is put together first."""
    retrieval: dict[str, Any] = field(default_factory=dict)
    answering: dict[str, Any] = field(default_factory=dict)
    on_answer: Callable[[], None] = lambda: None

    def query(self, text: str, mode: str | None) -> QueryResponse:
        body = {"query": text, "k": self.depth, **_named(mode), **self.retrieval}
        limit_s = self.timeout_s if "as_of" in body else ANSWER_TIMEOUT_S
        answer = parse_answer(QueryResponse, self.client.call("POST", Route.QUERY, body, timeout_s=limit_s))
        self.on_answer()
        return answer

    def answer(self, question: EvalQuestion, mode: str | None) -> AskResponse:
        """With what all its steps retrieved, where it has steps."""
        body: dict[str, Any] = {"question": question.text, "k": self.read, **_named(mode), **self.answering}
        if mode != NO_RETRIEVAL:
            body |= self.retrieval
        if "steps" in body and not body.get("deep"):
            body["passages"] = True
        if question.holds is not None:
            body["verify"] = True
        answer = parse_answer(AskResponse, self.client.call("POST", Route.ASK, body, timeout_s=self.timeout_s))
        self.on_answer()
        return answer

    def judge(
        self, question: EvalQuestion, criterion: Criterion, answer: str, other: str | None = None
    ) -> JudgeResponse:
        """Held against the known answers, or else the gold passages."""
        references = [text[:ANSWER_CHARS_MAX] for text in (question.answers or question.material)[:REFERENCES_MAX]]
        body: dict[str, Any] = {
            "question": question.text,
            "criterion": criterion.value,
            "answer": answer[:ANSWER_CHARS_MAX],
            "references": references,
        }
        if other is not None:
            body["other"] = other[:ANSWER_CHARS_MAX]
        said = parse_answer(JudgeResponse, self.client.call("POST", Route.JUDGE, body, timeout_s=self.timeout_s))
        self.on_answer()
        return said


def document_passages(client: Client, on_answer: Callable[[], None], uri: str) -> list[RankedPassage]:
    """All passages of one document, as a query would show them."""
    path = document_path(uri)
    shown = parse_answer(ShowDocument, client.call("GET", path, params={"limit": SHOWN_PASSAGES_LIMIT}))
    on_answer()
    title = shown.document.title
    return [
        RankedPassage(
            rank=1, score=0.0, id=each.id, title=each.title or title, text=each.text, document=uri, location={}
        )
        for each in shown.passages
    ]


def _named(mode: str | None) -> dict[str, str]:
    return {"mode": mode} if mode is not None else {}
