"""pydantic's errors as sentences: file, key, given value, allowed values."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from daemon.config.config import Config
from daemon.config_types.values import value_text
from daemon.contract.base import field_path
from daemon.sources.registry import SOURCE_KINDS

TABLE_LISTS = (*(kind.table for kind in SOURCE_KINDS), "client")
_EXAMPLES = {"device": 'one of "auto", "cpu", "mps", "cuda", "cuda:0", "cuda:1", …'}


def sentence(error: ErrorDetails, file: str, sources: Mapping[str, str]) -> str:
    """Returns one error as a sentence. `sources`: names of the environment variables that set keys, by dotted key."""
    path = list(error["loc"])
    message, found = error["msg"], error["input"]
    if error["type"] == "at_key":
        path.append(error["ctx"]["key"])
        found = found.get(path[-1]) if isinstance(found, dict) else None
    key = field_path(path)
    where = f"{file} (set by ${sources[key]})" if key in sources else file
    if error["type"] == "extra_forbidden":
        return f"{where}: {_unknown(path, found)}"
    model, field = field_at(path)
    if error["type"] == "missing":
        return f"{where}: {key} is missing; {_required(path)}"
    if error["type"] == "value_error":
        message = f"allowed is {error['ctx']['error']}"
    elif error["type"] == "at_key":
        message = f"allowed is {message}" if found is not None else f"must be set: {message}"
    else:
        message = f"allowed is {_allowed(error, path, model, field)}"
    shown = "is not set" if error["type"] == "at_key" and found is None else f"= {value_text(str(path[-1]), found)}"
    return f"{where}: {key} {shown}; {message}"


def field_at(path: Sequence[str | int]) -> tuple[type[BaseModel], FieldInfo | None]:
    """Returns the model that has a key, and the key's field; the field is `None` if the model lacks the key."""
    model: type[BaseModel] = Config
    field: FieldInfo | None = None
    for part in path:
        if isinstance(part, int):
            continue
        if field is not None:
            inner = _model_in(field.annotation)
            if inner is None:
                return model, field
            model = inner
        field = model.model_fields.get(str(part))
        if field is None:
            return model, None
    return model, field


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def did_you_mean(word: str, words: Sequence[str]) -> str:
    near = get_close_matches(word, words, n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def unknown_key(section: str, key: str, model: type[BaseModel]) -> str:
    """Returns the message for an unknown key, with a suggestion."""
    known = list(model.model_fields)
    hint = did_you_mean(key, known)
    elsewhere = [
        name for name in Config.model_fields if key in field_at([name, key])[0].model_fields and name != section
    ]
    if not hint and elsewhere:
        hint = f"; {key} belongs in {' or '.join(f'[{name}]' for name in elsewhere)}"
    return f"{hint}; {section} takes {', '.join(known)}"


def unknown_section(name: str) -> str:
    """Returns the message for an unknown section, with a suggestion."""
    known = list(Config.model_fields)
    return f"{did_you_mean(name, known)}; known are {', '.join(known)}"


def _unknown(path: Sequence[str | int], found: Any) -> str:
    if len(path) == 1:
        name = str(path[0])
        if isinstance(found, dict | list):
            return f"[{name}] is not a section{unknown_section(name)}"
        homes = [section for section in Config.model_fields if name in field_at([section, name])[0].model_fields]
        home = f"; {name} belongs in {' or '.join(f'[{section}]' for section in homes)}" if homes else ""
        return f"{name} = {value_text(name, found)} is outside every section{home or unknown_section(name)}"
    key = str(path[-1])
    section = str(path[0])
    model, _ = field_at(path)
    return f"{field_path(path)} = {value_text(key, found)} is not a setting{unknown_key(section, key, model)}"


def _required(path: Sequence[str | int]) -> str:
    name = path[-1]
    examples = {"path": '"~/notes", the directory to follow', "topics": '["articles"], the topics to follow'}
    return f"write {name} = {examples.get(str(name), '…')}"


def _allowed(error: ErrorDetails, path: Sequence[str | int], model: type[BaseModel], field: FieldInfo | None) -> str:
    kind = error["type"]
    name = str(path[-1])
    if kind == "tuple_type" and name in TABLE_LISTS:
        return f"a list of tables: write [[{name}]] with two brackets"
    if kind == "model_type":
        return (
            f"a table, written [{'[' + str(path[0]) + ']' if path[0] in TABLE_LISTS else path[0]}] with its keys below"
        )
    if kind == "literal_error" and field is not None:
        choices = [str(choice) for choice in get_args(field.annotation)]
        hint = did_you_mean(str(error["input"]), choices)
        return f"one of {', '.join(json.dumps(choice) for choice in choices)}{hint}"
    if kind.startswith(("int_", "float_", "greater_", "less_", "finite_")) and field is not None:
        return _number(field)
    if kind == "bool_type":
        return "true or false, without quotes"
    if kind in ("string_type", "string_too_short"):
        return "text in quotes, not empty"
    if kind == "string_pattern_mismatch":
        return _EXAMPLES.get(name, error["msg"])
    if kind == "too_short":
        return f"at least one; leave {name} out for the default"
    if kind == "dict_type":
        return f"a table, such as {name} = {{ name = value }}"
    return f"another value of {model.__name__} ({error['msg']})"


def _number(field: FieldInfo) -> str:
    whole = "a whole number" if field.annotation is int else "a number"
    low = high = ""
    for bound in field.metadata:
        if isinstance(bound, Ge):
            low = f"{bound.ge}"
        elif isinstance(bound, Gt):
            low = f"above {bound.gt}"
        if isinstance(bound, Le):
            high = f"and at most {bound.le}" if low.startswith("above") else f"to {bound.le}"
        elif isinstance(bound, Lt):
            high = f"and below {bound.lt}"
    if not (low or high):
        return whole
    return f"{whole} {low if low.startswith('above') else f'from {low}'} {high}".rstrip()
