"""Questions whose answers are found by text patterns, and the protocol of all kinds of questions."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from daemon.contract.query import RankedPassage


class Question(Protocol):
    """A question with `gold` items; `found(ranked)` returns the number of gold items among `ranked`."""

    @property
    def text(self) -> str: ...
    @property
    def gold(self) -> int: ...
    def found(self, ranked: Sequence[RankedPassage]) -> int: ...


@dataclass(frozen=True, slots=True)
class PatternQuestion:
    """A question answered by passages that match regular expressions, one for each required document."""

    text: str
    patterns: tuple[str, ...]

    @property
    def gold(self) -> int:
        return len(self.patterns)

    def found(self, ranked: Sequence[RankedPassage]) -> int:
        texts = [f"{passage.title}\n{passage.text}" for passage in ranked]
        return sum(any(re.search(pattern, text) for text in texts) for pattern in self.patterns)


def manual_questions(path: Path, language: str) -> list[PatternQuestion]:
    """Returns the questions over the manuals in one language."""
    entries = json.loads(path.read_text("utf-8"))
    return [PatternQuestion(each["question"], tuple(each["gold"])) for each in entries if each["language"] == language]
