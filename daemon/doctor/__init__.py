"""`hippod --inspect`: what would keep hippod from running well here, found without starting it. `hippoctl doctor` shows it.

Nothing is written, no lock is taken for longer than it takes to see whether somebody holds it, and every look elsewhere (a
model's server, a broker) has a time limit.
"""

from collections.abc import Callable, Iterator
from functools import partial

from daemon.config import Config
from daemon.contract.finding import Finding, guarded
from daemon.doctor.disk import disk
from daemon.doctor.formats import formats
from daemon.doctor.listening import listening
from daemon.doctor.machine import files, memory, versions
from daemon.doctor.models import encoder, llm
from daemon.doctor.secrets import secrets
from daemon.doctor.store import store
from daemon.sources.registry import SOURCE_KINDS

Look = Callable[[Config], Iterator[Finding]]
LOOKS: tuple[Look, ...] = (versions, formats, memory, files, secrets, listening, store, disk, encoder, llm)


def inspect(config: Config) -> Iterator[Finding]:
    """All findings. A look that fails in a way nobody foresaw is one, too."""
    for look in LOOKS:
        yield from guarded(look.__name__, partial(look, config))
    for kind in SOURCE_KINDS:
        yield from guarded(kind.table, partial(kind.inspect, config.tables(kind)))
