"""Refused parts of a model's answer, with fixed reasons for counting."""

from collections import Counter
from typing import Any

from memory.answering.working_memory.records.trace import Purpose, Refusal
from memory.llm.json_answers import replace_surrogates

MAX_LISTED_REFUSALS = 200
"""Maximum number of refusals of one call that are listed individually; further ones are only counted."""

UNKNOWN_POINT = "no such point"
UNKNOWN_ENTITY_NUMBER = "no such entity"
UNKNOWN_PASSAGE_NUMBER = "no such passage"
WITHOUT_ENTITY = "no entity"
WITHOUT_PASSAGE = "no passage"
WITHOUT_DESCRIPTION = "no description"
NOT_RETRIEVED = "not retrieved"
WRONG_FORM = "wrong form"
TOO_MANY = "too many"
NAMED_TWICE = "twice"
SINGLE_POINT = "alone"
OTHER_KIND = "another kind"
SWITCHED_OFF = "switched off"
CUT_OFF = "cut off"


class Refusals:
    """Collects the refusals of one call's output: the first `MAX_LISTED_REFUSALS` individually, further ones as counts."""

    def __init__(self, purpose: Purpose) -> None:
        self._purpose: Purpose = purpose
        self._listed: list[Refusal] = []
        self._more: Counter[str] = Counter()

    def add(self, why: str, what: object) -> None:
        if len(self._listed) < MAX_LISTED_REFUSALS:
            self._listed.append(Refusal(self._purpose, why, replace_surrogates(" ".join(str(what).split())[:200])))
        else:
            self._more[why] += 1

    @property
    def all(self) -> list[Refusal]:
        return self._listed + [Refusal(self._purpose, why, f"{count} more") for why, count in self._more.items()]


def without_last(proposed: list[Any], refusals: Refusals) -> list[Any]:
    """Returns the last list of a truncated answer without its last entry, which may be incomplete."""
    if proposed:
        refusals.add(CUT_OFF, proposed[-1])
    return proposed[:-1]
