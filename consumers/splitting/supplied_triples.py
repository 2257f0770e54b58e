"""Assigns the triples that a document supplies to its best-matching passages."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from consumers.types import Passage, Triple

_WORD = re.compile(r"\w+")


def read_triples(value: list[Any]) -> tuple[list[Triple], list[Any]]:
    """Returns (valid triples, other items) of a list. A valid triple is three non-blank strings."""
    good = [(item[0], item[1], item[2]) for item in value if _is_triple(item)]
    return good, [item for item in value if not _is_triple(item)]


def _is_triple(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 3 and all(isinstance(part, str) and part.strip() for part in item)


def assign_triples(passages: Sequence[Passage], triples: Sequence[Triple]) -> tuple[Passage, ...]:
    """Returns the passages with the triples assigned to them. A passage without a matching triple gets an empty tuple, not
    None.

    A triple goes to the passage with the highest score: share of the subject's words that the passage contains, plus share of
    the object's words. Of passages with equal scores, the first gets the triple.
    """
    if not passages:
        return ()
    placed: list[list[Triple]] = [[] for _ in passages]
    if len(passages) == 1:
        placed[0].extend(triples)
    elif triples:
        words = [_words(f"{passage.title}\n{passage.text}") for passage in passages]
        for triple in triples:
            ends = [_words(triple[0]), _words(triple[2])]
            scores = [sum(len(end & passage_words) / len(end) for end in ends if end) for passage_words in words]
            placed[scores.index(max(scores))].append(triple)
    return tuple(replace(passage, triples=tuple(assigned)) for passage, assigned in zip(passages, placed, strict=True))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
