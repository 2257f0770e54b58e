"""Requests of an evaluation to the daemon's socket.

`AnswerJournal` keeps the answers in a file while an evaluation runs, so that an interrupted evaluation can continue.
"""

import json
import os
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from cli.client.http import Client
from cli.client.typed_answers import Answer, parse_answer
from cli.errors import CommandError
from cli.evaluation.questions import EvalQuestion
from cli.evaluation.rows import Row
from cli.files import file_errors
from daemon.contract.answering.ask import AskResponse
from daemon.contract.choices import NO_RETRIEVAL, Answerer
from daemon.contract.evaluation import ANSWER_CHARS_MAX, REFERENCES_MAX, Criterion, JudgeResponse
from daemon.contract.http.routes import QUERY_CHARS_MAX, Route
from daemon.contract.query import QueryResponse, RankedPassage

LOOKED_AT = 20
"""Number of passages, the best matches by words, that are searched for a gold passage."""
READ = 5
"""Default number of passages for an answer; a deep answer has its own default."""


class AnswerJournal:
    """One JSON line per answer, with a hash of its request.

    The repeated command sends the same requests in the same order: the nth request with a given hash gets the nth kept answer.
    Answers of failed requests are not kept, so the repeated command sends these requests again.
    """

    def __init__(self, file: Path) -> None:
        """Reads the answers that an interrupted evaluation kept. An incomplete last line is removed."""
        self.file = file
        self._kept: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
        self.kept = 0
        """Number of answers in the file when it was opened."""
        for line in _whole_lines(file):
            try:
                entry = json.loads(line)
                self._kept[entry["request"]].append(entry["answer"])
            except (ValueError, TypeError, KeyError):
                raise CommandError(
                    f"{file} is not the journal of an evaluation.", hint="Delete it to ask every question again."
                ) from None
            self.kept += 1

    def take(self, route: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the next kept answer to a request, or None."""
        kept = self._kept[_hash(route, body)]
        return kept.popleft() if kept else None

    def keep(self, route: str, body: dict[str, Any], answer: dict[str, Any]) -> None:
        line = json.dumps({"request": _hash(route, body), "answer": answer}) + "\n"
        with file_errors(self.file, "written"), self.file.open("a", encoding="ascii") as out:
            out.write(line)


def journal_of(saved: Path) -> Path:
    """Returns the file that keeps the answers of an evaluation with `--save saved`."""
    return saved.with_name(f"{saved.name}.part")


def _whole_lines(file: Path) -> list[bytes]:
    """Returns the lines of a file, none if it is missing, and removes an incomplete last line."""
    with file_errors(file, "read"):
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return []
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(file, len(whole))
    return whole.splitlines()


def _hash(route: str, body: dict[str, Any]) -> str:
    return blake2b(json.dumps([route, body], sort_keys=True).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class EvalRequests:
    """`ks`: the ranks to measure at. `judges`: whether the model judges answers. `scope` and `as_of` apply to every question; a
    question's own scope is added. `on_answer` is called after each request. Requests that the `journal` has answers for are not
    sent."""

    client: Client
    ks: Sequence[int]
    judges: bool = False
    scope: dict[str, Any] | None = None
    as_of: str | None = None
    on_answer: Callable[[], None] = lambda: None
    journal: AnswerJournal | None = None

    def answers(self, question: EvalQuestion, row: Row) -> bool:
        """Returns whether the row answers the question: there are known answers to compare with, or a judge."""
        known = bool(question.answers) or question.holds is not None
        return row.answerer is not None and (known or self.judges)

    def query(self, question: EvalQuestion, row: Row) -> QueryResponse:
        body = {
            "query": question.text,
            "k": max(self.ks),
            **_named(row.mode),
            **row.retrieval,
            **self._within(question),
        }
        return self._answered(QueryResponse, Route.QUERY, body)

    def word_matches(self, question: EvalQuestion, text: str) -> list[RankedPassage]:
        """Returns the passages that match a text best by its words. Calls no model."""
        body = {"query": text[:QUERY_CHARS_MAX], "k": LOOKED_AT, "mode": "bm25", "filter": "none"}
        found = self.client.call("POST", Route.QUERY, body | self._within(question))
        self.on_answer()
        return parse_answer(QueryResponse, found).passages

    def answer(self, question: EvalQuestion, row: Row) -> AskResponse:
        """Returns the answer. An answer in several steps includes the retrieved passages if the question's gold is known."""
        body: dict[str, Any] = {"question": question.text, **_named(row.mode), **row.answering}
        if row.read is not None or row.answerer is not Answerer.DEEP:
            body["k"] = row.read or READ
        if row.mode != NO_RETRIEVAL:
            body |= {**row.retrieval, **self._within(question)}
        if question.gold and row.answerer is Answerer.ITERATIVE:
            body["depth"] = max(self.ks)
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
        """Returns the journal's answer, or else the daemon's answer, which is added to the journal."""
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
