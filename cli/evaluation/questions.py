"""Questions and claims with what answers them: gold passages or documents, known answers, whether a claim is true."""

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cli.errors import CommandError
from cli.evaluation.question_formats import (
    BadEntry,
    answers_of,
    claims_of,
    documents_of,
    pair_of,
    paragraphs_of,
    question_of,
)
from daemon.contract.answering.ask import RetrievedPassage
from daemon.contract.query import RankedPassage

FORMATS_HINT = (
    "Known are the files of MuSiQue, 2Wiki, HotpotQA, NaturalQuestions, PopQA, LV-Eval and NarrativeQA, claims (`claim` with "
    "`label` or `type`, or `true_claim` and `false_claim`), and `question` with `documents` (paths): docs/how-to/evaluation.md."
)


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question and what answers it: passages by their text, or documents by the end of their URI."""

    text: str
    passages: frozenset[str] = field(default_factory=frozenset)
    documents: frozenset[str] = field(default_factory=frozenset)
    answers: tuple[str, ...] = ()
    """Every known way to write the answer."""
    material: tuple[str, ...] = ()
    """The gold passages as they are written, for a judge."""
    holds: bool | None = None
    """Of a claim: whether it is true. None for a question."""
    pair: int | str | None = None
    """The same for the claims of one pair, which counts only where both are judged rightly (NoCha): the number of the entry
    that holds both, or what their entries name it by."""

    def found(self, ranked: Sequence[RankedPassage | RetrievedPassage]) -> int:
        """How many of its gold passages or documents are among `ranked`."""
        texts = {same_text(f"{passage.title}\n{passage.text}") for passage in ranked}
        uris = {unquote(uri) for passage in ranked for uri in (passage.document, *passage.also_in)}
        documents = sum(any(uri == path or uri.endswith(f"/{path}") for uri in uris) for path in self.documents)
        return len(self.passages & texts) + documents

    @property
    def gold(self) -> int:
        return len(self.passages) + len(self.documents)


def read_questions(path: Path, judged: bool = False) -> list[EvalQuestion]:
    """The questions in a file: a JSON array, or JSON lines. `CommandError` names the first bad entry and what it lacks.

    `judged`: a judge reads the answers, so that a question needs neither gold nor known answers.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start:,}.") from None
    entries = _entries(text, path) if text.strip() else []
    if not entries:
        raise CommandError(f"{path} contains no questions: it must be a JSON array with one object per question.")
    return [question for number, entry in enumerate(entries, 1) for question in _questions(entry, number, path, judged)]


def _entries(text: str, path: Path) -> list[Any]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or not lines[0].lstrip().startswith("{"):
            raise CommandError(f"{path} is not JSON: {error}.") from None
        return [_line(line, number, path) for number, line in enumerate(lines, 1)]
    if isinstance(whole, dict) and isinstance(whole.get("questions"), list):
        whole = whole["questions"]
    if isinstance(whole, dict) and whole:
        return [whole]  # JSON lines of one line
    return whole if isinstance(whole, list) else []


def _line(line: str, number: int, path: Path) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}[{number}] is not JSON: {error}.") from None


def _questions(entry: Any, number: int, path: Path, judged: bool) -> list[EvalQuestion]:
    """One, or the two of a pair of claims."""
    try:
        if not isinstance(entry, dict):
            raise BadEntry("is not a JSON object")
        claims = claims_of(entry)
        paragraphs = paragraphs_of(entry) if claims is None else []
        gold: dict[str, Any] = {
            "passages": frozenset(map(same_text, paragraphs)),
            "documents": frozenset(documents_of(entry)),
            "material": tuple(paragraphs),
        }
        if claims is not None:
            pair = number if len(claims) > 1 else pair_of(entry)
            return [EvalQuestion(text, **gold, holds=holds, pair=pair) for text, holds in claims]
        question = EvalQuestion(question_of(entry), **gold, answers=answers_of(entry))
        if not question.gold and not question.answers and not judged:
            raise BadEntry("names neither gold passages or documents nor an `answer`")
    except BadEntry as error:
        raise CommandError(f"{path}[{number}] {error}.", hint=FORMATS_HINT) from None
    return [question]


def same_text(text: str) -> str:
    """Equal for texts that differ in white space or in how Unicode writes a character: what reading a file may change."""
    return "".join(unicodedata.normalize("NFKC", text).split())
