"""Front matter of Markdown as metadata: YAML between `---` lines, or TOML between `+++` lines."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import yaml

from consumers.omissions import OmissionKind, Omissions

_YAML = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"(?:^|[ \t])#([^\n]*)", re.MULTILINE)
_PAIR = re.compile(r"([\w][\w .-]*?)\s*:(?:\s+(.*))?\Z")
_MAX_CHARS = 1 << 16
_MAX_DEPTH = 8


def front_matter(text: str, omissions: Omissions) -> tuple[dict[str, Any], str, int]:
    """Returns the values of the front matter, the text after it, and the number of lines before that text.

    Without front matter, the text is returned unchanged. Prose between two horizontal rules is not front matter. Values are
    strings as written ("2024-01-05", "yes"), or lists and dictionaries of such strings.
    """
    if match := _TOML.match(text[:_MAX_CHARS]):
        values = _toml(match[1])
    elif match := _YAML.match(text[:_MAX_CHARS]):
        values = _yaml(match[1])
    else:
        return {}, text, 0
    if values is None:
        return {}, text, 0
    parsed = str(values)
    for comment in _COMMENT.findall(match[1]):
        if comment.strip() and comment.strip() not in parsed:
            omissions.add(OmissionKind.COMMENT, comment)
    return values, text[match.end() :], text.count("\n", 0, match.end())


_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Loader that creates only strings, lists and dictionaries."""


def _yaml(text: str) -> dict[str, Any] | None:
    """Returns the parsed dictionary, or None if the text is no dictionary."""
    try:
        # A few aliases can expand to billions of elements.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, _LOADER)):
            return _pairs(text)
        found = yaml.load(text, _LOADER)  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError):
        return _pairs(text)
    if found in (None, ""):
        return {}
    return _object(found) if isinstance(found, dict) else None


def _pairs(text: str) -> dict[str, Any] | None:
    """Parses pairs that are invalid YAML, such as `title: Berlin: a visit`.

    Returns None unless each line is a pair, a list item, or the continuation of a value.
    """
    found: dict[str, Any] = {}
    key = ""
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if stripped.startswith("- ") and key:
            before = found[key]
            found[key] = [*(before if isinstance(before, list) else []), _scalar(stripped[2:])]
        elif line[:1].strip() and (pair := _PAIR.match(stripped)):
            key, value = pair[1], (pair[2] or "").strip()
            listed = value.startswith("[") and value.endswith("]")
            found[key] = (
                [_scalar(each) for each in value[1:-1].split(",") if each.strip()] if listed else _scalar(value)
            )
        elif not line[:1].isspace() or not key or not isinstance(found[key], str):
            return None
        else:
            found[key] = f"{found[key]} {stripped}".strip()
    return found or None


def _scalar(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'" else value


def _toml(text: str) -> dict[str, Any] | None:
    try:
        return _object(tomllib.loads(text)) or None
    except (ValueError, RecursionError):
        return None


def _object(value: Mapping[Any, Any], depth: int = 0) -> dict[str, Any]:
    return {str(key): _plain(each, depth + 1) for key, each in value.items()}


def _plain(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        return _object(value, depth)
    if isinstance(value, list):
        return [_plain(each, depth + 1) for each in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
