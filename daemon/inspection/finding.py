"""One thing that was looked at."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do where it is not well."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    hint: str = ""
