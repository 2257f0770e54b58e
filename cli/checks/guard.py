"""A check that breaks is one more check, and never the end of the others."""

from collections.abc import Callable, Iterable, Iterator

from cli.checks.check import Check
from cli.errors import Failure

ASK_ROOT = "run `sudo hippoctl doctor`"


def guarded(name: str, look: Callable[[], Iterable[Check]]) -> Iterator[Check]:
    """What `look` finds, or one warning where it fails. `Failure` goes through: that is a command's own account."""
    try:
        yield from look()
    except Failure:
        raise
    except PermissionError as error:
        yield Check(name, "warn", f"{error.filename or 'a file'} cannot be seen by this user", ASK_ROOT)
    except Exception as error:  # noqa: BLE001 - the others are still worth having
        hint = "this check itself failed; the others count all the same"
        yield Check(name, "warn", f"{type(error).__name__}: {error}", hint)
