"""`hippod --inspect`: what would keep hippod from running well here, found without starting it. `hippoctl doctor` shows it.

Nothing is written, no lock is taken for longer than it takes to see whether somebody holds it, and every look elsewhere (a
model's server, a broker) has a time limit.
"""

from collections.abc import Callable, Iterator

from daemon.config import Config
from daemon.inspection.disk import disk
from daemon.inspection.finding import Finding
from daemon.inspection.folders import folders
from daemon.inspection.listening import listening
from daemon.inspection.machine import files, memory, versions
from daemon.inspection.models import encoder, kafka, llm
from daemon.inspection.secrets import secrets
from daemon.inspection.sight import unseen
from daemon.inspection.store import store

Look = Callable[[Config], Iterator[Finding]]
LOOKS: tuple[Look, ...] = (versions, memory, files, secrets, folders, listening, store, disk, encoder, llm, kafka)


def inspect(config: Config) -> Iterator[Finding]:
    """All findings. A look that fails in a way nobody foresaw is one, too."""
    for look in LOOKS:
        try:
            yield from look(config)
        except PermissionError as error:
            yield unseen(look.__name__, error.filename or "something that it looks at")
        except Exception as error:  # noqa: BLE001 - the others are still worth having
            hint = "this check itself failed; the others count all the same"
            yield Finding(look.__name__, "warn", f"{type(error).__name__}: {error}", hint)
