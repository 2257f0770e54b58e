"""Formats the resolved configuration as TOML, for `--check`."""

from typing import Any

import tomli_w
from pydantic import BaseModel

from daemon.config.config import Config
from daemon.config_types.values import Duration, Interval, MemoryLimit, Size, masked, size_text, without_userinfo
from daemon.contract.durations import duration_text


def render(config: Config) -> str:
    """Returns every key with its present value, secrets masked. Parsing it gives the same configuration."""
    lines = [f"# {config.file or 'defaults'}, with defaults and environment filled in"]
    for name in Config.model_fields:
        value = getattr(config, name)
        tables = [(f"[[{name}]]", each) for each in value] if isinstance(value, tuple) else [(f"[{name}]", value)]
        for header, table in tables:
            written = _table(table)
            nested = {key: written.pop(key) for key in list(written) if isinstance(written[key], dict)}
            lines += ["", header, tomli_w.dumps(written).rstrip("\n")]
            if nested:
                lines += ["", tomli_w.dumps({name: nested}).rstrip("\n")]
    return "\n".join(lines) + "\n"


def _table(section: BaseModel) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, field in type(section).model_fields.items():
        value = getattr(section, key)
        if value is None:
            table[key] = ""
        elif isinstance(value, dict):
            table[key] = masked(value)
        elif isinstance(value, BaseModel):
            table[key] = _table(value)
        elif isinstance(value, tuple):
            table[key] = list(value)
        elif _is(field.metadata, Duration):
            table[key] = duration_text(value)
        elif _is(field.metadata, Interval):
            table[key] = duration_text(value) if value else "off"
        elif _is(field.metadata, Size) or (_is(field.metadata, MemoryLimit) and isinstance(value, int)):
            table[key] = size_text(value)
        elif isinstance(value, bool | int | float):
            table[key] = value
        else:
            table[key] = without_userinfo(str(value))
    return table


def _is(metadata: list[Any], kind: Any) -> bool:
    return kind.__metadata__[0] in metadata
