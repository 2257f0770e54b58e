"""From a model's text to a JSON value: as it stands, else out of what surrounds it, else repaired by a library."""

import json
from dataclasses import dataclass
from typing import Any

import json_repair

from memory.llm.errors import BadAnswer

MAX_CHARS = 2_000_000
MAX_DEPTH = 40
REPAIRED_CHARS = 16_384
"""Repairing takes time that grows with the square of some broken texts (16 KiB: about a second); the rest is cut off."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value, and how it was had: "ok", "surrounded" (prose or a code fence around it) or "repaired"."""

    value: Any
    how: str


def parse(text: str) -> Parsed:
    """The JSON in `text`. Raises BadAnswer where there is none, or where it is a bomb. May take a second for a long text."""
    if len(text) > MAX_CHARS:
        raise BadAnswer("bomb", f"the model wrote {len(text):,} characters")
    if _depth(text) > MAX_DEPTH:
        raise BadAnswer("bomb", f"the model nested its answer more than {MAX_DEPTH} deep")
    try:
        return Parsed(json.loads(text), "ok")
    except ValueError:
        pass
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        raise BadAnswer("no JSON", "the model answered without JSON")
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
        if isinstance(value, dict):
            return Parsed(value, "surrounded")
    except ValueError:
        pass
    try:
        value = json_repair.loads(text[start : start + REPAIRED_CHARS], skip_json_loads=True)
    except (ValueError, RecursionError) as error:
        raise BadAnswer("no JSON", "the model's answer cannot be repaired into JSON") from error
    if not isinstance(value, dict | list):
        raise BadAnswer("no JSON", "the model's answer cannot be repaired into JSON")
    return Parsed(value, "repaired")


def field(value: Any, *names: str) -> Any:
    """What stands under one of `names` in an object, or in the first of a list's objects that has it; else BadAnswer."""
    for candidate in [value, *(value if isinstance(value, list) else [])]:
        if isinstance(candidate, dict):
            for name in names:
                if name in candidate:
                    return candidate[name]
    raise BadAnswer("wrong schema", f'the model\'s answer has no "{names[0]}"')


def writable(text: str) -> str:
    """`text` without halves of surrogate pairs, which have no UTF-8: what is left of an emoji that was cut in the middle."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def partial(text: str) -> Any:
    """What of an unfinished JSON text is certain; `None` where nothing is. For showing an answer while it is written."""
    start = text.find("{")
    if start < 0 or len(text) > REPAIRED_CHARS or _depth(text) > MAX_DEPTH:
        return None
    try:
        return json_repair.loads(text[start:], stream_stable=True)
    except (ValueError, RecursionError):
        return None


def _depth(text: str) -> int:
    """How deep brackets stand in each other outside of strings, no more than one beyond `MAX_DEPTH`."""
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
    return deepest
