"""Overrides from the environment: `HIPPOD_<SECTION>__<KEY>`.

pydantic-settings could read these, but it ignores unknown names, cannot say which variable a bad value came from, and would
control the file's search order. Thirty lines here fulfil the contract.
"""

import tomllib
from collections.abc import Mapping
from typing import Any, get_args

from daemon.config.config import Config
from daemon.config.messages import TABLE_LISTS, field_at, unknown_key, unknown_section

PREFIX = "HIPPOD_"


def overrides(environ: Mapping[str, str]) -> tuple[dict[str, dict[str, Any]], dict[str, str], list[str]]:
    """Returns values by section and key, the variable of each dotted key, and errors in the variables' names."""
    values: dict[str, dict[str, Any]] = {}
    sources: dict[str, str] = {}
    problems: list[str] = []
    for name in sorted(environ):
        if not name.startswith(PREFIX):
            continue
        section, separator, key = name.removeprefix(PREFIX).lower().partition("__")
        if not separator:
            problems += _single_underscore(name, section)
        elif section in TABLE_LISTS:
            problems.append(f"environment: ${name}: lists of tables are written in the file, as [[{section}]]")
        elif section not in Config.model_fields:
            problems.append(f"environment: ${name}: {section} is not a section{unknown_section(section)}")
        else:
            model, field = field_at([section, key])
            if field is None:
                problems.append(f"environment: ${name}: {key} is not a setting{unknown_key(section, key, model)}")
                continue
            values.setdefault(section, {})[key] = _value(environ[name], field.annotation)
            sources[f"{section}.{key}"] = name
    return values, sources, problems


def _single_underscore(name: str, rest: str) -> list[str]:
    """Returns errors for names that would be settings if written with two underscores. Other names belong to other programs."""
    section, _, key = rest.partition("_")
    if section in Config.model_fields and key and field_at([section, key])[1] is not None:
        wanted = f"{PREFIX}{section.upper()}__{key.upper()}"
        return [f"environment: ${name} sets nothing; write {wanted}, with two underscores"]
    return []


def _value(text: str, annotation: Any) -> Any:
    """Converts a variable's text: text settings take it as it is, others parse it as TOML (numbers, booleans, lists)."""
    if annotation in (int, float, bool) or (get_args(annotation) and text.lstrip().startswith("[")):
        try:
            parsed = tomllib.loads(f"value = {text}")
        except (ValueError, RecursionError):
            return text
        return parsed["value"] if len(parsed) == 1 else text
    return text
