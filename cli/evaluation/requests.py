"""Requests of an evaluation to the daemon's socket."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cli.client.http import Client
from cli.client.typed_answers import parse_answer
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.rows import Row
from daemon.contract.answering.ask import AskResponse
from daemon.contract.answering.judge import ANSWER_CHARS_MAX, REFERENCES_MAX, Criterion, JudgeResponse
from daemon.contract.choices import NO_RETRIEVAL, Answerer
from daemon.contract.http.client import ANSWER_TIMEOUT_S
from daemon.contract.http.routes import Route
from daemon.contract.limits import QUERY_CHARS_MAX
from daemon.contract.query import QueryResponse, RankedPassage

LOOKED_AT = 20
"""Passages searched for the text of a gold passage: the best ones by its words."""
READ = 5
"""Default number of passages for an answer; a deep answer has its own default."""


@dataclass(frozen=True, slots=True)
class EvalRequests:
    """`depth`: how many passages a query finds. `scope` and `as_of` apply to every question; a question's own scope is added.
    `on_answer` is called after each request.
    """

    client: Client
    depth: int
    timeout_s: float
    """Timeout of an answer, and of a query about an earlier commit, whose index is built first."""
    scope: dict[str, Any] | None = None
    as_of: str | None = None
    on_answer: Callable[[], None] = lambda: None

    def query(self, question: EvalQuestion, row: Row) -> QueryResponse:
        body = {"query": question.text, "k": self.depth, **_named(row.mode), **row.retrieval, **self._within(question)}
        return self._ask_query(body)

    def word_matches(self, question: EvalQuestion, text: str) -> list[RankedPassage]:
        """Returns the passages that match a text best by its words. Calls no model."""
        body = {"query": text[:QUERY_CHARS_MAX], "k": LOOKED_AT, "mode": "bm25", "filter": "none"}
        return self._ask_query(body | self._within(question)).passages

    def answer(self, question: EvalQuestion, row: Row) -> AskResponse:
        """Returns the answer, with the passages that its steps retrieved if it has steps and the question's gold is known."""
        body: dict[str, Any] = {"question": question.text, **_named(row.mode), **row.answering}
        if row.read is not None or row.answerer is not Answerer.DEEP:
            body["k"] = row.read or READ
        if row.mode != NO_RETRIEVAL:
            body |= {**row.retrieval, **self._within(question)}
        if question.gold and row.answerer is Answerer.ITERATIVE:
            body["depth"] = self.depth
        if question.gold and row.answerer is Answerer.DEEP:
            body["passages"] = True
        if question.holds is not None:
            body["consistent" if question.is_prequel else "verify"] = True
        answer = parse_answer(AskResponse, self.client.call("POST", Route.ASK, body, timeout_s=self.timeout_s))
        self.on_answer()
        return answer

    def judge(
        self, question: EvalQuestion, criterion: Criterion, answer: str, other: str | None = None
    ) -> JudgeResponse:
        """Judges an answer. The judge gets the known answers and the source paragraphs of the question, if there are any."""
        body: dict[str, Any] = {
            "question": question.text,
            "criterion": criterion.value,
            "answer": answer[:ANSWER_CHARS_MAX],
            "references": _at_most(question.answers),
        }
        if question.sources:
            body["passages"] = _at_most(question.sources)
        if other is not None:
            body["other"] = other[:ANSWER_CHARS_MAX]
        said = parse_answer(JudgeResponse, self.client.call("POST", Route.JUDGE, body, timeout_s=self.timeout_s))
        self.on_answer()
        return said

    def _ask_query(self, body: dict[str, Any]) -> QueryResponse:
        limit_s = self.timeout_s if "as_of" in body else ANSWER_TIMEOUT_S
        answer = parse_answer(QueryResponse, self.client.call("POST", Route.QUERY, body, timeout_s=limit_s))
        self.on_answer()
        return answer

    def _within(self, question: EvalQuestion) -> dict[str, Any]:
        scope = {**(self.scope or {}), **(question.scope or {})}
        found: dict[str, Any] = {"scope": scope} if scope else {}
        return found | ({"as_of": self.as_of} if self.as_of is not None else {})


def _at_most(texts: tuple[str, ...]) -> list[str]:
    return [text[:ANSWER_CHARS_MAX] for text in texts[:REFERENCES_MAX]]


def _named(mode: str | None) -> dict[str, str]:
    return {"mode": mode} if mode is not None else {}
