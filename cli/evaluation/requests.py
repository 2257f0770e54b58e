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
from daemon.contract.http.routes import Route
from daemon.contract.limits import QUERY_CHARS_MAX
from daemon.contract.query import QueryResponse, RankedPassage

LOOKED_AT = 20
"""Passages in which the text of a gold passage is looked for: the best by its words."""


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

    def word_matches(self, text: str) -> list[RankedPassage]:
        """The passages that match a text best by its words. No model is asked."""
        kept = {name: value for name, value in self.retrieval.items() if name in ("scope", "as_of")}
        body = {"query": text[:QUERY_CHARS_MAX], "k": LOOKED_AT, "mode": "bm25", "filter": "none", **kept}
        answer = parse_answer(QueryResponse, self.client.call("POST", Route.QUERY, body, timeout_s=self.timeout_s))
        self.on_answer()
        return answer.passages

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
        known = question.answers or [str(gold) for gold in question.passages]
        references = [text[:ANSWER_CHARS_MAX] for text in known[:REFERENCES_MAX]]
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


def _named(mode: str | None) -> dict[str, str]:
    return {"mode": mode} if mode is not None else {}
