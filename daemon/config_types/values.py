"""The base of all sections, and kinds of values beyond those of TOML: paths, durations, sizes, lists, addresses, secrets.

Each validator raises `ValueError` with the end of a sentence that says what is allowed; `daemon.config.messages` adds file, key
and value before it.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pathspec import GitIgnoreSpec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from daemon.contract.durations import ALLOWED, parse_duration
from daemon.contract.paths import expand

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b)", re.IGNORECASE)
_BYTES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4}
_BYTES |= {"kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4}
_LONGEST_S = 100 * 365 * 86400.0
_LARGEST = 2**62
Seconds = Annotated[float, Field(gt=0, le=86400)]
"""A time limit in seconds, a plain number because its key ends in `_s`."""
Count = Annotated[int, Field(ge=1, le=1_000_000)]
MiB = 1024 * 1024
MASK = "***"
VALUE_TEXT_MAX = 100
"""Maximum characters of a value in an error message."""
_SECRET = re.compile(r"(^|_)(password|passwd|passphrase|secret|token|api_?key|key|credentials?|jaas)($|_)", re.ASCII)
_PLACES = frozenset({"api_key_file", "token_file"})
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a value: the directory that relative paths start from, and the environment.

    `read_secrets`: files of tokens and keys must be readable.
    """

    base: Path = field(default_factory=Path.cwd)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    read_secrets: bool = True


def context_of(info: ValidationInfo) -> Context:
    return info.context if isinstance(info.context, Context) else Context()


def _path(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str | Path):
        raise ValueError('a path in quotes, such as "/srv/notes" or "~/notes"')
    context = context_of(info)
    return expand(str(value), context.base, context.environ)


def _seconds(value: Any) -> float:
    allowed = f"{ALLOWED}, up to 100 years"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(allowed)
    if isinstance(value, str):
        try:
            value = parse_duration(value)
        except ValueError:
            raise ValueError(allowed) from None
    if not 0 <= value <= _LONGEST_S:
        raise ValueError(allowed)
    return float(value)


def _interval(value: Any) -> float:
    allowed = 'a time of at least one second such as "30s", "15m" or "1h", a number of seconds, or "off"'
    if value == "off":
        return 0.0
    try:
        seconds = _seconds(value)
    except ValueError:
        raise ValueError(allowed) from None
    if 0 < seconds < 1:
        raise ValueError(allowed)
    return seconds


def _size(value: Any) -> int:
    allowed = 'a size such as "64 MiB" or "500 kB", or a whole number of bytes'
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            raise ValueError(allowed)
        number = float(match[1]) * _BYTES[match[2].lower()]
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        raise ValueError(allowed)
    if not 1 <= number <= _LARGEST:
        raise ValueError(allowed)
    return int(number)


def _memory_limit(value: Any) -> Any:
    if value in ("auto", "off"):
        return value
    try:
        return _size(value)
    except ValueError:
        raise ValueError('a size such as "6 GiB", a whole number of bytes, "auto" or "off"') from None


def or_none(value: Any) -> Any:
    return None if value == "" else value


def _names(value: Any) -> Any:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    allowed = 'a list of names in quotes, such as ["one", "two"]'
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(allowed)
    if any(not isinstance(name, str) or not name.strip() for name in value):
        raise ValueError(allowed)
    return tuple(value)


def _labels(value: Any) -> Any:
    return () if value in ([], (), "") else _names(value)


def _globs(value: Any) -> Any:
    allowed = 'a list of patterns as in a .gitignore file, such as ["*.md", "reports/**"]'
    if not isinstance(value, list | tuple):
        raise ValueError(allowed)
    for glob in value:
        if not isinstance(glob, str) or not glob.strip() or "\0" in glob:
            raise ValueError(allowed)
        try:
            GitIgnoreSpec.from_lines([glob])
        except ValueError:
            raise ValueError(f'{allowed}; "{glob}" is not a pattern') from None
    return tuple(value)


def size_text(size: int) -> str:
    """Formats a size as in the file: 33554432 gives "32 MiB". Parsing it gives the same number."""
    for unit in ("GiB", "MiB", "KiB"):
        if size % _BYTES[unit.lower()] == 0:
            return f"{size // _BYTES[unit.lower()]} {unit}"
    return f"{size} B"


AnyPath = Annotated[Path, BeforeValidator(_path)]
"""An absolute path: `~` and `$VAR` are expanded, relative paths start from the configuration file's directory."""

Duration = Annotated[float, BeforeValidator(_seconds)]
"""Seconds."""

Interval = Annotated[float, BeforeValidator(_interval)]
"""Seconds between two runs; 0 is "off"."""

Size = Annotated[int, BeforeValidator(_size)]
"""Bytes."""

MemoryLimit = Annotated[int | Literal["auto", "off"], BeforeValidator(_memory_limit)]
"""Bytes; "auto" is a share of the machine's memory."""

Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Labels = Annotated[tuple[str, ...], BeforeValidator(_labels)]
OptionalNames = Annotated[tuple[str, ...], BeforeValidator(_labels)]
Globs = Annotated[tuple[str, ...], BeforeValidator(_globs)]
OptionalText = Annotated[str | None, BeforeValidator(or_none)]
"""Text; an empty string is `None` and disables an optional setting."""


def optional_number(**bounds: Any) -> Any:
    """Returns the type of a number within `bounds`. An empty string becomes `None`: another setting provides the default."""
    return Annotated[Annotated[float, Field(**bounds)] | None, BeforeValidator(or_none)]


OptionalPath = Annotated[AnyPath | None, BeforeValidator(or_none)]


class Section(BaseModel):
    """A table of the file. Unknown keys and values of a wrong type are errors. Immutable."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, validate_default=True, allow_inf_nan=False, hide_input_in_errors=True
    )


def at(key: str, message: str) -> PydanticCustomError:
    """Returns an error about one key for a validator of the whole section."""
    return PydanticCustomError("at_key", "{message}", {"key": key, "message": message})


def is_secret(key: str) -> bool:
    """Whether a key's value must not be shown. `api_key_env` is included, because people put the key itself there."""
    return key not in _PLACES and _SECRET.search(key.lower()) is not None


def without_userinfo(url: str) -> str:
    """Returns the address without name and password before its host."""
    return _USERINFO.sub(f"{MASK}@", url)


def masked(value: Any) -> Any:
    """Returns `value` with all secrets in it replaced, at any depth."""
    if isinstance(value, dict):
        return {key: MASK if is_secret(str(key)) else masked(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [masked(inner) for inner in value]
    return without_userinfo(value) if isinstance(value, str) else value


def value_text(key: str, value: Any) -> str:
    """Returns a value as written in the file, in one short line; secrets are hidden."""
    if is_secret(key):
        return MASK
    text = json.dumps(masked(value), ensure_ascii=False, default=str)
    return text if len(text) <= VALUE_TEXT_MAX else f"{text[: VALUE_TEXT_MAX - 1]}…"
