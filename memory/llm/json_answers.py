"""Parses a model's text as JSON: unchanged, without the text around it, or after a repair by a library."""

import json
from dataclasses import dataclass
from typing import Any

import json_repair

from memory.llm.errors import BadAnswer

MAX_ANSWER_CHARS = 2_000_000
MAX_DEPTH = 40
MAX_REPAIRED_CHARS = 16_384
"""Maximum number of characters that are repaired; the rest is cut off. Some repairs take quadratic time (about a second for 16
KiB)."""
_THINKING_BEGINS, _THINKING_ENDS = "<think>", "</think>"
"""The marks around the reasoning of a reasoning model."""
_JSON_ERRORS = (ValueError, RecursionError)
"""Errors of the JSON parser: invalid text, or more nested brackets than the stack allows."""


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """A value, and how it was parsed: "ok", "surrounded" (by prose or a code fence) or "repaired".

    `whole` is False if the text ends inside the value.
    """

    value: object
    how: str
    whole: bool = True


def parse(text: str) -> ParsedJson:
    """May take a second for a long text.

    Raises BadAnswer if there is no JSON, or if the text is too long or nested too deeply.
    """
    if len(text) > MAX_ANSWER_CHARS:
        raise BadAnswer("bomb", f"the model wrote {len(text):,} characters")
    text = _without_thinking(text)
    start = _opening(text)
    if _THINKING_BEGINS in (text if start < 0 else text[:start]):
        raise BadAnswer("no JSON", "the model's answer ended before its thinking did")
    if _depth(text[max(start, 0) :]) > MAX_DEPTH:
        raise BadAnswer("bomb", f"the model nested its answer more than {MAX_DEPTH} deep")
    try:
        return ParsedJson(json.loads(text), "ok")
    except _JSON_ERRORS:
        pass
    if start < 0:
        raise BadAnswer("no JSON", "the model answered without JSON")
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
        if isinstance(value, dict):
            return ParsedJson(value, "surrounded")
    except _JSON_ERRORS:
        pass
    try:
        value = json_repair.loads(text[start : start + MAX_REPAIRED_CHARS], skip_json_loads=True)
    except _JSON_ERRORS as error:
        raise BadAnswer("no JSON", "the model's answer cannot be repaired into JSON") from error
    if not isinstance(value, dict | list):
        raise BadAnswer("no JSON", "the model's answer cannot be repaired into JSON")
    return ParsedJson(value, "repaired", not _ends_within(text[start:]))


def objects_in(value: object) -> list[dict[str, Any]]:
    """Returns the object in a model's JSON, or all objects of its list."""
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


def get_field(value: object, *names: str) -> Any:
    """Returns the value of the first of `names` that the object contains. In a list, the first object with such a name is used.

    Raises BadAnswer if none of the names occurs.
    """
    for candidate in objects_in(value):
        for name in names:
            if name in candidate:
                return candidate[name]
    raise BadAnswer("wrong schema", f'the model\'s answer has no "{names[0]}"')


def replace_surrogates(text: str) -> str:
    """Returns `text` without unpaired surrogates, such as half of an emoji, which have no UTF-8 encoding."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def whole_number(value: object) -> int | None:
    """Returns the value as an integer if it is an integer or a text of digits; otherwise None."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def parse_partial(text: str) -> Any:
    """Returns the part of an unfinished JSON text that further text cannot change; None if there is none. Used to show an
    answer before it is complete."""
    text = text.rpartition(_THINKING_ENDS)[2]
    start = text.find("{")
    if (
        start < 0
        or len(text) > MAX_REPAIRED_CHARS
        or _THINKING_BEGINS in text[:start]
        or _depth(text[start:]) > MAX_DEPTH
    ):
        return None
    try:
        return json_repair.loads(text[start:], stream_stable=True)
    except _JSON_ERRORS:
        return None


def _opening(text: str) -> int:
    """Returns the index of the first JSON bracket; -1 if there is none."""
    return min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)


def _without_thinking(text: str) -> str:
    """Returns the text after a reasoning model's reasoning, which may contain drafts of JSON.

    Text that is JSON as a whole is returned unchanged, because an answer may quote the mark that ends reasoning.
    """
    if _THINKING_ENDS not in text:
        return text
    for whole in (text, text.partition(_THINKING_ENDS)[2]):
        try:
            json.loads(whole)
        except _JSON_ERRORS:
            continue
        return whole
    return text.rpartition(_THINKING_ENDS)[2]


def _ends_within(text: str) -> bool:
    """Whether a bracket or a string of the first value is still open at the end of the text."""
    depth, inside = _scan(text)[1:]
    return depth > 0 or inside


def _depth(text: str) -> int:
    """Returns the maximum nesting depth of brackets outside strings. Counting stops at `MAX_DEPTH` + 1."""
    return _scan(text)[0]


def _scan(text: str) -> tuple[int, int, bool]:
    """Returns the maximum depth of brackets outside strings, the depth at the end, and whether the text ends inside a
    string."""
    depth = deepest = 0
    inside = escaped = False
    for char in text:
        if inside:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                inside = False
        elif char == '"':
            inside = True
        elif char in "[{":
            depth += 1
            if depth > deepest:
                deepest = depth
                if deepest > MAX_DEPTH:
                    break
        elif char in "]}":
            depth = max(depth - 1, 0)
    return deepest, depth, inside
