"""The results of `hippod --inspect` and `hippoctl doctor`: one for each check."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

ASK_ROOT = "run `sudo hippoctl doctor`"
"""Hint for paths that this user may not access: hippod's directories are closed to other users on purpose."""

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check, and what to do if it is not ok. `exit_code`: hippoctl's exit code if the check fails."""

    name: str
    status: Verdict
    detail: str
    hint: str = ""
    exit_code: int = 1

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "status": self.status, "detail": self.detail, "hint": self.hint}


def not_visible(name: str, path: object) -> Finding:
    """Returns the finding for a path that this user may not access."""
    return Finding(name, "warn", f"{path} is not visible to this user", ASK_ROOT)


def guarded(
    name: str, check: Callable[[], Iterable[Finding]], passing: type[Exception] | tuple[type[Exception], ...] = ()
) -> Iterator[Finding]:
    """Yields the findings of `check`. If it raises, yields a warning, so that other checks still run. Errors of the types
    `passing` are raised."""
    try:
        yield from check()
    except passing:
        raise
    except PermissionError as error:
        yield not_visible(name, error.filename or "something that it looks at")
    except Exception as error:  # noqa: BLE001 - other checks must still run
        hint = "this check itself failed; the others count all the same"
        yield Finding(name, "warn", f"{type(error).__name__}: {error}", hint)
