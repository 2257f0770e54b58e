"""Wraps the daemon's JSON in objects with attributes, for commands that only print an answer.

This module avoids pydantic, whose models take as long to load as the daemon takes to answer.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cli.errors import CommandError

Result = TypeVar("Result")
_LISTS = "also_in conflicting_values encoders extractors left_out others progress readers triples unapplied"
_VALUES = (
    "cosine edge error estimate explain extraction group_size hub_factor id lag left_s link llm memory "
    "near_duplicate_of note other_share own_share path paused rate share since step total trouble uri "
    "waiting_for weak weight"
)
OPTIONAL: dict[str, Any] = {
    **dict.fromkeys(_LISTS.split(), ()),
    **dict.fromkeys(_VALUES.split()),
    "heading": "",
    "text": "",
    "mention": 0,
    "skipped": {},
    "stages_ms": {},
}
"""Optional fields, and fields that older daemons lack, with their default values."""


class PlainAnswer(dict[str, Any]):
    """An object of an answer. It replaces a type of the contract; a field is checked when it is read."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return _plain(self[name])
        if name in OPTIONAL:
            return OPTIONAL[name]
        raise not_understood(f"{name}: Field required")

    @property
    def model_extra(self) -> dict[str, Any]:
        """All fields of the object. The contract's types return only undeclared fields."""
        return self


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return PlainAnswer(value)
    return [_plain(each) for each in value] if isinstance(value, list) else value


def from_plain(function: Callable[[Any], Result], answer: Mapping[str, Any]) -> Result:
    """Calls `function`, whose parameter has a type of the contract, with the daemon's JSON. Raises CommandError if the JSON
    does not have that type."""
    try:
        return function(PlainAnswer(answer))
    except (AttributeError, TypeError, ValueError) as error:
        raise not_understood(str(error)) from error


def not_understood(what: str) -> CommandError:
    """Returns the error for an answer that violates the contract; `what` begins with the field."""
    return CommandError(
        f"hippod's answer is not understood: {what}.",
        hint="hippoctl and hippod probably have different versions; --json prints the unchanged answer.",
    )
