"""Questions over the corpora of `../shared/data`, with what answers each of them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cli.evaluation.questions import EvalQuestion, same_text
from daemon.contract.query import RankedPassage


class Question(Protocol):
    """`gold` things answer it; `found` counts those that are among some passages."""

    @property
    def text(self) -> str: ...
    @property
    def gold(self) -> int: ...
    def found(self, ranked: Sequence[RankedPassage]) -> int: ...


@dataclass(frozen=True, slots=True)
class PatternQuestion:
    """Answered by passages that match regular expressions, one for each document that is needed."""

    text: str
    patterns: tuple[str, ...]

    @property
    def gold(self) -> int:
        return len(self.patterns)

    def found(self, ranked: Sequence[RankedPassage]) -> int:
        texts = [f"{passage.title}\n{passage.text}" for passage in ranked]
        return sum(any(re.search(pattern, text) for text in texts) for pattern in self.patterns)


def corpus_questions(folder: Path) -> list[EvalQuestion]:
    """The questions of a set whose `corpus.json` was added. Gold are documents, as a long one may be several passages."""
    corpus = json.loads((folder / "corpus.json").read_text("utf-8"))
    uris = {same_text(f"{each['title']}\n{each['text']}"): f"added:{each['idx']}" for each in corpus}
    questions = []
    for entry in json.loads((folder / "questions.json").read_text("utf-8")):
        gold = [each for each in entry["paragraphs"] if each["is_supporting"]]
        documents = frozenset(uris[same_text(f"{each['title']}\n{each['text']}")] for each in gold)
        questions.append(EvalQuestion(entry["question"], documents=documents))
    return questions


def manual_questions(path: Path, language: str) -> list[PatternQuestion]:
    """The questions over the manuals in one language."""
    entries = json.loads(path.read_text("utf-8"))
    return [PatternQuestion(each["question"], tuple(each["gold"])) for each in entries if each["language"] == language]
