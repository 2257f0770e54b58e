"""Requests of an evaluation to the daemon's socket."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cli.client.http import Client
from cli.client.typed_answers import Answer, parse_answer
from cli.evaluation.answer_journal import AnswerJournal
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.rows import Row
from daemon.contract.answering.ask import AskResponse
from daemon.contract.choices import NO_RETRIEVAL, Answerer
from daemon.contract.evaluation import ANSWER_CHARS_MAX, REFERENCES_MAX, Criterion, JudgeResponse
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
    `on_answer` is called after each request. Requests that the `journal` has answers for are not sent.
    """

    client: Client
    depth: int
    scope: dict[str, Any] | None = None
    as_of: str | None = None
    on_answer: Callable[[], None] = lambda: None
    journal: AnswerJournal | None = None

    def query(self, question: EvalQuestion, row: Row) -> QueryResponse:
        body = {"query": question.text, "k": self.depth, **_named(row.mode), **row.retrieval, **self._within(question)}
        return self._answered(QueryResponse, Route.QUERY, body)

    def word_matches(self, question: EvalQuestion, text: str) -> list[RankedPassage]:
        """Returns the passages that match a text best by its words. Calls no model."""
        body = {"query": text[:QUERY_CHARS_MAX], "k": LOOKED_AT, "mode": "bm25", "filter": "none"}
        asked = body | self._within(question)
        found = self.client.call("POST", Route.QUERY, asked)
        self.on_answer()
        return parse_answer(QueryResponse, found).passages

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
        return self._answered(AskResponse, Route.ASK, body)

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
        return self._answered(JudgeResponse, Route.JUDGE, body)

    def _answered(self, model: type[Answer], route: Route, body: dict[str, Any]) -> Answer:
        """Returns the kept answer, else the daemon's answer, which is then kept."""
        kept = self.journal.take(route, body) if self.journal is not None else None
        answer = kept if kept is not None else self.client.call("POST", route, body)
        parsed = parse_answer(model, answer)
        if self.journal is not None and kept is None:
            self.journal.keep(route, body, answer)
        self.on_answer()
        return parsed

    def _within(self, question: EvalQuestion) -> dict[str, Any]:
        scope = {**(self.scope or {}), **(question.scope or {})}
        found: dict[str, Any] = {"scope": scope} if scope else {}
        return found | ({"as_of": self.as_of} if self.as_of is not None else {})


def _at_most(texts: tuple[str, ...]) -> list[str]:
    return [text[:ANSWER_CHARS_MAX] for text in texts[:REFERENCES_MAX]]


def _named(mode: str | None) -> dict[str, str]:
    return {"mode": mode} if mode is not None else {}
