"""What `hippod --inspect` and `hippoctl doctor` find: one result a check."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

ASK_ROOT = "run `sudo hippoctl doctor`"
"""For what this user may not see: hippod's directories are closed to others, as they should be."""

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was checked, how it is, and what to do where it is not well. `exit_code` is hippoctl's where it has failed."""

    name: str
    status: Verdict
    detail: str
    hint: str = ""
    exit_code: int = 1

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "status": self.status, "detail": self.detail, "hint": self.hint}


def not_visible(name: str, path: object) -> Finding:
    """For a path that this user may not look at."""
    return Finding(name, "warn", f"{path} is not visible to this user", ASK_ROOT)


def guarded(
    name: str, check: Callable[[], Iterable[Finding]], passing: type[Exception] | tuple[type[Exception], ...] = ()
) -> Iterator[Finding]:
    """What `check` finds. Where the check itself fails, one warning, so that the others go on; `passing` errors are raised."""
    try:
        yield from check()
    except passing:
        raise
    except PermissionError as error:
        yield not_visible(name, error.filename or "something that it looks at")
    except Exception as error:  # noqa: BLE001 - the others are still worth having
        hint = "this check itself failed; the others count all the same"
        yield Finding(name, "warn", f"{type(error).__name__}: {error}", hint)
