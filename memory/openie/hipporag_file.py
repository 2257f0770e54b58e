"""Reads OpenIE results in HippoRAG's file format, so that users need not pay for them again."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory.openie.json_stream import JsonStream, ValueTooLong
from memory.phrase_normalisation import normalise_phrase, normalise_triple
from store.types import Triple


class HippoRAGFormatError(ValueError):
    """The file does not contain OpenIE results in HippoRAG's format; the message states the expected format."""


@dataclass(frozen=True, slots=True)
class HippoRAGPassage:
    """One entry of "docs". `skipped`: number of malformed triples. `problem`: the reason why the entry is unusable; None if it
    is usable."""

    title: str
    text: str
    entities: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()
    skipped: int = 0
    problem: str | None = None


def read_hipporag_file(path: Path) -> Iterator[HippoRAGPassage]:
    """Yields the passages of a file `{"docs": [{"passage", "extracted_entities", "extracted_triples"}]}`, in order.

    A passage's first line is its title; a passage of one line has no title. Triples keep their order and repetitions. A
    malformed entry is yielded with its `problem` and does not affect other entries. Raises `OSError` if the file cannot be
    read, and `HippoRAGFormatError` if it has another format, in both cases before the first passage. The file is read twice,
    first to check all of it, then for the passages, so that it need not be kept in memory.
    """
    try:
        member = _docs_member(path)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error
    if member is None:
        raise HippoRAGFormatError(
            f'{path} is not a HippoRAG OpenIE results file: give a JSON object with a list "docs" of objects that hold '
            '"passage", "extracted_entities" and "extracted_triples".'
        )
    return _passages(path, member)


def _unreadable(path: Path, error: Exception) -> HippoRAGFormatError:
    what = str(error) if isinstance(error, ValueTooLong) else f"it is not valid JSON ({error})"
    return HippoRAGFormatError(f"{path} is not a HippoRAG OpenIE results file: {what}.")


def _docs_member(path: Path) -> int | None:
    """Returns the index of the member "docs" (the last one of that name, as in JSON parsers). Returns None if there is none."""
    found = None
    with path.open("rb") as file:
        text = JsonStream(file)
        if text.peek() == "{":
            for number, name in enumerate(text.members()):
                if name == "docs":
                    found = number if text.peek() == "[" else None
                text.skip()
        else:
            text.skip()
        text.end()
    return found


def _passages(path: Path, member: int) -> Iterator[HippoRAGPassage]:
    try:
        with path.open("rb") as file:
            text = JsonStream(file)
            for number, _ in enumerate(text.members()):
                if number == member:
                    yield from (_passage(at, doc) for at, doc in enumerate(text.elements()))
                    return
                text.skip()
    except (ValueError, RecursionError) as error:  # another program changed the file
        raise _unreadable(path, error) from error


def _passage(number: int, doc: Any) -> HippoRAGPassage:
    where = f"docs[{number}]"
    if not isinstance(doc, dict):
        return HippoRAGPassage("", "", problem=f"{where} is not an object.")
    passage = doc.get("passage")
    if not isinstance(passage, str) or not passage.strip():
        return HippoRAGPassage("", "", problem=f'{where} has no text in "passage".')
    entities, triples = doc.get("extracted_entities") or [], doc.get("extracted_triples") or []
    if not isinstance(entities, list) or not isinstance(triples, list):
        return HippoRAGPassage(
            "", "", problem=f'{where} has "extracted_entities" or "extracted_triples" that is not a list.'
        )
    first, newline, rest = passage.partition("\n")
    title, text = (first, rest) if newline and rest.strip() else ("", passage)
    kept = [normalise_triple(triple) for triple in triples]
    names = (normalise_phrase(entity) for entity in entities if isinstance(entity, str))
    return HippoRAGPassage(
        title=title,
        text=text,
        entities=tuple(dict.fromkeys(name for name in names if name)),
        triples=tuple(triple for triple in kept if triple),
        skipped=sum(triple is None for triple in kept),
    )
