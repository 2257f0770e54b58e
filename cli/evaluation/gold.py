"""Gold passages: finds the documents that contain a gold passage, and decides whether a retrieved passage is part of it.

hippod splits long texts and may join short ones, so a gold passage is rarely the text of one retrieved passage. Texts are
compared by their runs of `RUN_CHARS` characters, without white space, which works in every script.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

RUN_CHARS = 12
PART_MIN = 0.4
"""Minimum overlap of a passage and a gold passage: the shared runs as a share of the shorter text's runs."""
WHOLE_MIN = 0.8
"""Minimum share of the gold passage's runs that a document with another title must contain."""
NEARLY_AS_MUCH = 0.9
"""A document contains the gold passage if it has at least this share of the best document's shared runs."""


class FoundPassage(Protocol):
    """The fields of a retrieved passage that this module reads."""

    @property
    def title(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def document(self) -> str: ...
    @property
    def also_in(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """A passage that answers a question. `documents`: the URIs of the documents that contain it; None before the look-up."""

    title: str
    text: str
    documents: frozenset[str] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.title}\n{self.text}" if self.title else self.text

    def has_part(self, passage: FoundPassage) -> bool:
        """Returns whether the passage is from a document with this gold passage and overlaps its text."""
        if self.documents is None:
            known = same_text(passage.title) == same_text(self.title)
        else:
            known = not self.documents.isdisjoint(uris_of(passage))
        return known and bool(_shared_runs(self.text, passage.text))


def uris_of(passage: FoundPassage) -> tuple[str, ...]:
    return (passage.document, *passage.also_in)


def containing_documents(gold: GoldPassage, candidates: Sequence[FoundPassage]) -> frozenset[str]:
    """Returns the URIs of the documents whose passages among `candidates` contain the gold passage.

    Documents with the gold passage's title take precedence; a document with another title must contain nearly all of the text.
    """
    titled: dict[str, set[str]] = {}
    others: dict[str, set[str]] = {}
    for passage in candidates:
        if shared := _shared_runs(gold.text, passage.text):
            contained = titled if same_text(passage.title) == same_text(gold.title) else others
            for uri in uris_of(passage):
                contained.setdefault(uri, set()).update(shared)
    whole = len(_runs(gold.text))
    for contained, required in ((titled, 0.0), (others, WHOLE_MIN * whole)):
        best = max(map(len, contained.values()), default=0)
        if best and best >= required:
            return frozenset(uri for uri, runs in contained.items() if len(runs) >= NEARLY_AS_MUCH * best)
    return frozenset()


def same_text(text: str) -> str:
    """Returns the text without white space and in one Unicode normalisation, because parsing may change both."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def _shared_runs(one: str, other: str) -> frozenset[str]:
    """Returns the runs that both texts contain; no runs if these are less than `PART_MIN` of the shorter text's runs."""
    first, second = _runs(one), _runs(other)
    shared = first & second
    return shared if len(shared) >= PART_MIN * min(len(first), len(second)) else frozenset()


@lru_cache(maxsize=512)
def _runs(text: str) -> frozenset[str]:
    bare = same_text(text).casefold()
    return frozenset(bare[at : at + RUN_CHARS] for at in range(max(len(bare) - RUN_CHARS, 0) + 1))
