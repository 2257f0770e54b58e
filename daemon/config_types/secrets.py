"""The secret settings, which neither errors nor `--check` show."""

import json
import re
from typing import Any

MASK = "***"
VALUE_TEXT_MAX = 100
"""Maximum characters of a value in an error message."""
_SECRET = re.compile(r"(^|_)(password|passwd|passphrase|secret|token|api_?key|key|credentials?|jaas)($|_)", re.ASCII)
_PLACES = frozenset({"api_key_file", "token_file"})
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")


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
