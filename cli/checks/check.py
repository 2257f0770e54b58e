"""The result of one check."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cli.errors import Exit

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it is, and what to do where it is not well. `code` is the exit code of a failed one."""

    name: str
    status: Verdict
    detail: str
    hint: str = ""
    code: Exit = Exit.FAILED

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "status": self.status, "detail": self.detail, "hint": self.hint}


def worst(checks: Iterable[Check]) -> Exit:
    """The exit code of all: the highest of those that failed. Warnings do not count."""
    return max((check.code for check in checks if check.status == "fail"), default=Exit.DONE)
