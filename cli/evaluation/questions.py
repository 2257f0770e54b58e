"""Questions and claims with their gold passages or documents, known answers and, for claims, truth.

HGMem asks each question of one book only; `BookScopes` are the scopes of the books.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cli.errors import CommandError
from cli.evaluation.gold import FoundPassage, GoldPassage, containing_documents, same_text, uris_of
from cli.evaluation.question_formats import (
    BadEntry,
    answers_of,
    book_of,
    claims_of,
    documents_of,
    id_of,
    is_prequel,
    keywords_of,
    pair_of,
    paragraphs_of,
    question_of,
    scope_of,
    sources_of,
)
from cli.files import file_errors
from daemon.contract.documents import DocumentEntry

FORMATS_HINT = "See docs/how-to/evaluation.md for the keys of an entry, and the data sets whose files need no change."


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question with its gold: passages by their texts, or documents by the ends of their URIs."""

    text: str
    passages: tuple[GoldPassage, ...] = ()
    documents: frozenset[str] = field(default_factory=frozenset)
    answers: tuple[str, ...] = ()
    """All known answers."""
    keywords: str = ""
    """LV-Eval's keywords: the words of the answer that count most."""
    sources: tuple[str, ...] = ()
    """The paragraphs that the question was made from, for a judge."""
    holds: bool | None = None
    """Whether a claim is true. None for a question."""
    pair: int | str | None = None
    """Identifier of a pair of claims, which counts only if both claims are judged correctly (NoCha): the number of the entry
    with both claims, or the name that the two entries share."""
    is_prequel: bool = False
    """Whether the claim is a story from before a book (Prelude), which is true unless the book contradicts it."""
    id: str = ""
    """Unique among the questions of its file."""
    scope: Mapping[str, Any] | None = None
    """The question's scope, as JSON."""
    book: str | None = None
    """Name of the document or folder that the question is limited to."""
    absent: tuple[str, ...] = ()
    """Gold that the memory does not contain: the titles of passages, the paths of documents."""

    def found(self, ranked: Sequence[FoundPassage]) -> int:
        """Returns the number of the question's gold passages and documents among `ranked`."""
        uris = {unquote(uri) for passage in ranked for uri in uris_of(passage)}
        documents = sum(any(_is_named(uri, path) for uri in uris) for path in self.documents)
        return documents + sum(any(map(gold.has_part, ranked)) for gold in self.passages)

    @property
    def gold(self) -> int:
        return len(self.passages) + len(self.documents)


@dataclass
class GoldLocator:
    """Finds the documents that contain the gold passages of questions.

    `look(question, text)` returns the passages in the question's scope that match the text best by words. `list_uris` returns
    the URIs of all documents, and is called only if a question names documents.
    """

    look: Callable[[EvalQuestion, str], Sequence[FoundPassage]]
    list_uris: Callable[[], Iterable[str]]

    def locate(self, question: EvalQuestion) -> EvalQuestion:
        """Returns the question with the documents of its gold passages, and with its `absent` gold."""
        passages = tuple(
            replace(gold, documents=containing_documents(gold, self.look(question, str(gold))))
            for gold in question.passages
        )
        absent = [gold.title or gold.text for gold in passages if not gold.documents]
        absent += sorted(path for path in question.documents if not self._is_document(path))
        return replace(question, passages=passages, absent=tuple(absent))

    @cached_property
    def _uris_by_name(self) -> dict[str, list[str]]:
        """Returns URIs without percent-encoding, by the last part of their paths."""
        found: dict[str, list[str]] = defaultdict(list)
        for uri in map(unquote, self.list_uris()):
            found[_last_part(uri)].append(uri)
        return found

    def _is_document(self, path: str) -> bool:
        return any(_is_named(uri, path) for uri in self._uris_by_name.get(_last_part(path), ()))


def _is_named(uri: str, path: str) -> bool:
    return uri == path or uri.endswith(f"/{path}")


def _last_part(path: str) -> str:
    return path.rpartition("/")[2]


def read_questions(path: Path, judged: bool = False) -> list[EvalQuestion]:
    """Returns the questions of a file: JSON (an array or lines), Parquet or CSV. `CommandError` names the first bad entry.

    `judged`: a judge scores the answers, so questions need neither gold nor known answers.
    """
    entries = _read_table(path) if path.suffix.lower() in (".parquet", ".csv") else _read_json(path)
    if not entries:
        raise CommandError(f"{path} contains no questions: it must be a JSON array with one object per question.")
    questions = [each for number, entry in enumerate(entries, 1) for each in _questions(entry, number, path, judged)]
    if len({each.id for each in questions}) < len(questions):
        questions = [replace(each, id=f"{each.id}#{number}") for number, each in enumerate(questions, 1)]
    return questions


def _read_table(path: Path) -> list[object]:
    """Returns the rows of a Parquet or CSV file."""
    with file_errors(path, "read"):
        if path.suffix.lower() == ".parquet":
            from pyarrow import ArrowException
            from pyarrow.parquet import read_table

            try:
                rows: list[object] = read_table(path).to_pylist()
            except ArrowException as error:
                raise CommandError(f"{path} is not a Parquet file: {error}.") from None
            return rows
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                return list(csv.DictReader(file))
        except (UnicodeDecodeError, csv.Error) as error:
            raise CommandError(f"{path} is not a CSV file in UTF-8: {error}.") from None


def _read_json(path: Path) -> list[object]:
    try:
        with file_errors(path, "read"):
            text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start:,}.") from None
    return _entries(text, path) if text.strip() else []


def _entries(text: str, path: Path) -> list[object]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.split("\n") if line.strip()]  # splitlines() also splits inside strings
        if len(lines) < 2 or not lines[0].lstrip().startswith("{"):
            raise CommandError(f"{path} is not JSON: {error}.") from None
        return [_line(line, number, path) for number, line in enumerate(lines, 1)]
    if isinstance(whole, dict) and isinstance(whole.get("questions"), list):
        whole = whole["questions"]
    if isinstance(whole, dict) and whole:
        return [whole]  # a file of JSON lines with a single line
    return whole if isinstance(whole, list) else []


def _line(line: str, number: int, path: Path) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}[{number}] is not JSON: {error}.") from None


def _questions(entry: object, number: int, path: Path, judged: bool) -> list[EvalQuestion]:
    """Returns one question, or the two claims of a pair."""
    try:
        if not isinstance(entry, dict):
            raise BadEntry("is not a JSON object")
        claims = claims_of(entry)
        paragraphs = paragraphs_of(entry) if claims is None else []
        gold: dict[str, Any] = {
            "passages": tuple({same_text(str(each)): each for each in paragraphs}.values()),
            "documents": frozenset(documents_of(entry)),
            "sources": tuple(dict.fromkeys([*map(str, paragraphs), *sources_of(entry)])),
            "scope": scope_of(entry),
            "book": book_of(entry),
        }
        if claims is not None:
            pair = number if len(claims) > 1 else pair_of(entry)
            gold["is_prequel"] = is_prequel(entry)
            ids = [id_of(entry, number)] if len(claims) == 1 else [f"{id_of(entry, number)}:{each}" for each in "tf"]
            return [
                EvalQuestion(text, **gold, holds=holds, pair=pair, id=id)
                for (text, holds), id in zip(claims, ids, strict=True)
            ]
        known: dict[str, Any] = {
            "answers": answers_of(entry),
            "keywords": keywords_of(entry),
            "id": id_of(entry, number),
        }
        question = EvalQuestion(question_of(entry), **gold, **known)
        if not question.gold and not question.answers and not judged:
            raise BadEntry("names neither gold passages or documents nor an `answer`")
    except BadEntry as error:
        raise CommandError(f"{path}[{number}] {error}.", hint=FORMATS_HINT) from None
    return [question]


@dataclass
class BookScopes:
    """Turns the names of books into scopes. A book is a document with this title, or a file or folder with this name."""

    list_documents: Callable[[], Sequence[DocumentEntry]]
    absent: int = 0
    """Number of questions so far whose book the memory lacks. These questions are asked of the whole memory."""

    def scoped(self, question: EvalQuestion) -> EvalQuestion:
        if question.book is None or question.scope is not None:
            return question
        prefixes = self._prefixes.get(_key(question.book))
        if not prefixes:
            self.absent += 1
            return question
        return replace(question, scope={"in": sorted(prefixes)})

    @cached_property
    def _prefixes(self) -> dict[str, set[str]]:
        """Returns the URIs of documents and folders by name."""
        found: dict[str, set[str]] = defaultdict(set)
        for entry in self.list_documents():
            found[_key(entry.title)].add(entry.uri)
            scheme, colon, path = entry.uri.partition(":")
            *folders, file = path.split("/")
            for name in (file, file.rpartition(".")[0]):
                found[_key(unquote(name))].add(entry.uri)
            for depth, folder in enumerate(folders, 1):
                found[_key(unquote(folder))].add(f"{scheme}{colon}{'/'.join(folders[:depth])}/")
        found.pop("", None)
        return found


def _key(name: str) -> str:
    return same_text(name).casefold()
