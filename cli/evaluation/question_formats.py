"""Parses one entry of a question file: its question or claim, known answers and gold passages. Pure.

The formats are those of the files with which HippoRAG, HippoRAG 2 and HGMem are evaluated, as their authors publish them.
"""

import ast
import json
from typing import Any

from pydantic import ValidationError

from cli.evaluation.gold import GoldPassage
from daemon.contract.scope import Scope

TRUE_LABELS = frozenset({"true", "consistent", "yes"})
FALSE_LABELS = frozenset({"false", "contradict", "contradictory", "inconsistent", "no"})
CLAIM_KEYS = ("claim", "content")
"""Keys of a claim: `claim` (NoCha and others), `content` (Prelude)."""
LABEL_KEYS = ("label", "answer", "type")
"""Keys that say whether a claim is true; the first one present counts. NoCha uses `type`."""
ANSWER_KEYS = ("answer", "gold_ans", "answers", "reference", "reference_answer")
"""Keys of the known answers; the first one present counts. NarrativeQA and LV-Eval use `answers`, NQ uses `reference`, HGMem
`reference_answer`."""
NUMBERED_ANSWER_KEYS = ("answer1", "answer2")
"""Keys of the known answers in NarrativeQA's `qaps.csv`."""
ID_KEYS = ("id", "_id", "question_id", "qid")
BOOK_KEYS = ("book", "book_title", "book_name", "document_id")
CHARACTER_KEYS = ("character", "char", "character_name")
SOURCE_KEYS = ("origin_chunks", "paragraph", "source")
"""Keys of the paragraphs that a question was made from; HGMem's is `origin_chunks`."""
POPQA_KEYS = ("obj", "possible_answers", "o_wiki_title", "o_aliases")


class BadEntry(Exception):
    """An entry that cannot be used; the message is a predicate such as "has no `question`"."""


def claims_of(entry: dict[str, Any]) -> list[tuple[str, bool]] | None:
    """Returns the entry's one or two claims as (text, whether it is true); None if the entry is a question."""
    if "true_claim" in entry or "false_claim" in entry:
        return [(_text(entry, "true_claim"), True), (_text(entry, "false_claim"), False)]
    key = next((key for key in CLAIM_KEYS if key in entry), None)
    if key is None or any(asked in entry for asked in ("question", "input")):
        return None
    text = _text(entry, key)
    return [(_prequel(entry, text) if is_prequel(entry) else text, _label(entry))]


def is_prequel(entry: dict[str, Any]) -> bool:
    """Returns whether the entry is from Prelude: a story from before a book, to be judged for consistency with the book."""
    return "content" in entry and "claim" not in entry


def _prequel(entry: dict[str, Any], text: str) -> str:
    """Returns the story after the names of its book and character."""
    book, character = _first(entry, BOOK_KEYS), _first(entry, CHARACTER_KEYS)
    named = [f"Book: {book}"] if book else []
    named += [f"Character: {character}"] if character else []
    return "\n".join([*named, f"A story from before the book: {text}"])


def id_of(entry: dict[str, Any], number: int) -> str:
    """Returns the entry's id, or its number in the file if it has none."""
    return _first(entry, ID_KEYS) or str(number)


def book_of(entry: dict[str, Any]) -> str | None:
    return _first(entry, BOOK_KEYS)


def scope_of(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Returns `scope`, which limits the documents that the question is about."""
    if entry.get("scope") is None:
        return None
    try:
        return Scope.model_validate(entry["scope"]).model_dump(mode="json", by_alias=True) or None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, ["scope", *first["loc"]]))
        raise BadEntry(f"has a `{where}` that is not valid: {first['msg']}") from None


def sources_of(entry: dict[str, Any]) -> list[str]:
    """Returns the paragraphs that the question was made from, for a judge."""
    found: list[str] = []
    for key in SOURCE_KEYS:
        value = entry.get(key)
        for each in value if isinstance(value, list) else [value]:
            text = (each.get("content") or each.get("text")) if isinstance(each, dict) else each
            if isinstance(text, str) and text.strip():
                found.append(text)
    return found


def keywords_of(entry: dict[str, Any]) -> str:
    """Returns LV-Eval's `answer_keywords`, or ""."""
    value = entry.get("answer_keywords")
    return " ".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _first(entry: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    """Returns the value of the first of the keys that has a text or a number."""
    values = (entry.get(key) for key in keys)
    return next((str(value) for value in values if isinstance(value, str | int) and str(value).strip()), None)


def pair_of(entry: dict[str, Any]) -> str | None:
    """Returns NoCha's `index`, which the two claims of a pair share; None for other entries, where `index` may be a row
    number."""
    nocha = "claim" in entry and "type" in entry and not {"label", "answer"} & entry.keys()
    return str(entry["index"]) if nocha and entry.get("index") is not None else None


def _label(entry: dict[str, Any]) -> bool:
    key = next((key for key in LABEL_KEYS if key in entry), "label")
    label = entry.get(key)
    if isinstance(label, bool):
        return label
    word = label.strip().lower() if isinstance(label, str) else ""
    if word in TRUE_LABELS or word in FALSE_LABELS:
        return word in TRUE_LABELS
    raise BadEntry(
        "is a claim without a `label` that says true or false" if label is None else f"has the `{key}` {label!r}"
    )


def question_of(entry: dict[str, Any]) -> str:
    """Returns `question` (NarrativeQA: its `text`), or LV-Eval's `input`."""
    asked = entry.get("question")
    if isinstance(asked, dict):
        return _text(asked, "text", "question.text")
    return _text(entry, "input") if "question" not in entry and "input" in entry else _text(entry, "question")


def answers_of(entry: dict[str, Any]) -> tuple[str, ...]:
    """Returns all known answers in the order of the file; none if the entry has none."""
    key = next((key for key in ANSWER_KEYS if entry.get(key) is not None), None)
    found = [*_strings(entry[key], key)] if key is not None else []
    if key is None:
        for each in (*NUMBERED_ANSWER_KEYS, *POPQA_KEYS):
            found += _strings(_unpacked(entry.get(each)), each)
    found += _strings(entry.get("answer_aliases"), "answer_aliases")
    return tuple(dict.fromkeys(text for text in found if text.strip()))


def _unpacked(value: object) -> object:
    """Parses a list in a text. PopQA writes lists as JSON or as Python literals: `'["actor", "stage actor"]'`,
    `"['actor']"`."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        for read in (json.loads, ast.literal_eval):
            try:
                return read(value)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    return value


def _strings(value: object, key: str) -> list[str]:
    """Returns the texts of one answer or of a list of answers; an answer is a text or an object with `text`."""
    found = []
    for each in value if isinstance(value, list) else [value]:
        text = each.get("text") if isinstance(each, dict) else each
        if isinstance(text, str):
            found.append(text)
        elif isinstance(text, int | float):
            found.append(str(text))
        elif text is not None:
            raise BadEntry(f"has an answer in `{key}` that is neither text nor has a `text`")
    return found


def paragraphs_of(entry: dict[str, Any]) -> list[GoldPassage]:
    """Returns the gold passages; none if the entry has no passages."""
    if entry.get("supporting_facts") is not None:
        return _supported(entry)
    key = next((key for key in ("contexts", "paragraphs") if key in entry), None)
    if key is None:
        return []
    if not isinstance(entry[key], list):
        raise BadEntry(f"has `{key}` that is not a list")
    found = []
    for at, each in enumerate(entry[key]):
        where = f"{key}[{at}]"
        if not isinstance(each, dict):
            raise BadEntry(f"has {where}, which is not an object")
        # As in HippoRAG's code, a paragraph without `is_supporting` is supporting.
        if each.get("is_supporting", True):
            text = "text" if "text" in each else "paragraph_text"
            found.append(GoldPassage(_text(each, "title", f"{where}.title"), _text(each, text, f"{where}.text")))
    return found


def _supported(entry: dict[str, Any]) -> list[GoldPassage]:
    """Returns the paragraphs of `context` named by `supporting_facts`: a list of pairs, or columns as on the Hugging Face
    hub."""
    facts, context = entry["supporting_facts"], entry.get("context")
    if context is None:
        raise BadEntry("has `supporting_facts` without the `context` that they are about")
    try:
        titles = set(facts["title"]) if isinstance(facts, dict) else {fact[0] for fact in facts}
        pairs = zip(context["title"], context["sentences"], strict=True) if isinstance(context, dict) else context
        found = [GoldPassage(title, " ".join(sentences)) for title, sentences in pairs if title in titles]
    except (TypeError, KeyError, IndexError, ValueError):
        raise BadEntry(
            "has `supporting_facts` or a `context` of another form than [[title, sentence]…] and [[title, [sentences]]…]"
        ) from None
    if titles and not found:
        raise BadEntry("has `supporting_facts` about titles that are not in its `context`")
    return found


def documents_of(entry: dict[str, Any]) -> list[str]:
    """Returns the paths in `documents`; each path is the end of a document's URI."""
    paths = entry.get("documents")
    if paths is None:
        return []
    if (
        not isinstance(paths, list)
        or not paths
        or not all(isinstance(path, str) and path.strip("/. ") for path in paths)
    ):
        raise BadEntry("has `documents` that is not a list of paths")
    return [path.removeprefix("./").lstrip("/") for path in paths]


def _text(entry: dict[str, Any], key: str, shown: str | None = None) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BadEntry(f"has no `{shown or key}`")
    return value
