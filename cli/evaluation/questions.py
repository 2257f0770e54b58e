"""Questions with their gold passages, in HippoRAG's formats and in this project's own."""

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cli.errors import CommandError
from daemon.contract.query import RankedPassage


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question and what answers it: passages by their text, or documents by the end of their URI."""

    text: str
    passages: frozenset[str] = field(default_factory=frozenset)
    documents: frozenset[str] = field(default_factory=frozenset)
    answers: tuple[str, ...] = ()
    """Every known way to write the answer."""

    def found(self, ranked: Sequence[RankedPassage]) -> int:
        """How many of its gold passages or documents are among `ranked`."""
        texts = {same_text(f"{passage.title}\n{passage.text}") for passage in ranked}
        uris = {unquote(uri) for passage in ranked for uri in (passage.document, *passage.also_in)}
        documents = sum(any(uri == path or uri.endswith(f"/{path}") for uri in uris) for path in self.documents)
        return len(self.passages & texts) + documents

    @property
    def gold(self) -> int:
        return len(self.passages) + len(self.documents)


def read_questions(path: Path) -> list[EvalQuestion]:
    """The questions in a file. `CommandError` names the first entry that is none."""
    try:
        entries = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path} is no JSON: {error}.") from None
    if isinstance(entries, dict) and isinstance(entries.get("questions"), list):
        entries = entries["questions"]
    if not isinstance(entries, list) or not entries:
        raise CommandError(f"{path} holds no questions: it must be a JSON array with one object a question.")
    return [_question(entry, f"{path}[{number}]") for number, entry in enumerate(entries, 1)]


def _question(entry: Any, where: str) -> EvalQuestion:
    if not isinstance(entry, dict) or not isinstance(entry.get("question"), str) or not entry["question"].strip():
        raise CommandError(f"{where} has no `question`.")
    try:
        if "documents" in entry:
            question = EvalQuestion(
                entry["question"], documents=frozenset(map(_path, entry["documents"])), answers=_answers(entry)
            )
        else:
            question = EvalQuestion(
                entry["question"], passages=frozenset(map(same_text, _paragraphs(entry))), answers=_answers(entry)
            )
    except (TypeError, KeyError, AttributeError, IndexError, ValueError) as error:
        raise CommandError(f"{where} is in no known format: {type(error).__name__}: {error}.", hint=_FORMATS) from None
    if not question.gold:
        raise CommandError(f"{where} names nothing that answers it.", hint=_FORMATS)
    return question


_FORMATS = (
    "Known are `paragraphs` or `contexts` with `is_supporting`, `supporting_facts` with `context`, and `documents` "
    "(paths, as a URI ends)."
)


def _paragraphs(entry: dict[str, Any]) -> list[str]:
    """The supporting paragraphs, as title, newline, text."""
    if "supporting_facts" in entry:
        titles = {fact[0] for fact in entry["supporting_facts"]}
        return [f"{title}\n{' '.join(sentences)}" for title, sentences in entry["context"] if title in titles]
    entries = entry["contexts"] if "contexts" in entry else entry["paragraphs"]
    # As HippoRAG reads them: a paragraph that does not say is a supporting one.
    gold = [paragraph for paragraph in entries if paragraph.get("is_supporting", True)]
    return [f"{each['title']}\n{each['text'] if 'text' in each else each['paragraph_text']}" for each in gold]


def _answers(entry: dict[str, Any]) -> tuple[str, ...]:
    """`answer` (one or several) and `answer_aliases`; nothing where the file has none."""
    found: list[Any] = []
    for value in (entry.get("answer"), entry.get("answer_aliases")):
        found += value if isinstance(value, list) else [value]
    return tuple(answer for answer in found if isinstance(answer, str) and answer.strip())


def _path(value: str) -> str:
    if not value.strip("/. "):
        raise ValueError("a document's path is empty")
    return value.removeprefix("./").lstrip("/")


def same_text(text: str) -> str:
    """Equal for texts that differ in white space or in how Unicode writes a character: what reading a file may change."""
    return "".join(unicodedata.normalize("NFKC", text).split())
