"""`hippod --inspect`: finds problems of this machine and configuration without starting hippod, for `hippoctl doctor`.

The checks write nothing, take no lock, and have a time limit, so that a hanging check does not hold back the findings of other
checks.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from daemon.config import Config
from daemon.contract.finding import Finding, guarded
from daemon.doctor.access_rights import label_rights, secrets, socket_rights
from daemon.doctor.configuration import configuration, directory_permissions, worker
from daemon.doctor.connectivity import encoder, llm
from daemon.doctor.machine import clock, formats, memory, open_files, packages, programs, python
from daemon.doctor.store import disk, store
from daemon.sources.registry import SOURCE_KINDS

NamedCheck = tuple[str, Callable[[], Iterable[Finding]]]
Check = Callable[[Config], Iterator[Finding]]
CHECKS: tuple[Check, ...] = (
    packages,
    formats,
    programs,
    memory,
    open_files,
    secrets,
    socket_rights,
    label_rights,
    store,
    disk,
    encoder,
    llm,
    worker,
)
CONFIGURATION_TIMEOUT_S = 30.0
"""Time limit of the checks that need no valid configuration. Reading the configuration accesses the folders that it names."""
TIMEOUT_S = 90.0
"""Time limit of all other checks together. An idle model server may need 20 s to load its model."""


def inspect(file: Path | None) -> Iterator[Finding]:
    """Yields all findings. `file` is the value of `hippod --config`.

    If the configuration cannot be used, runs only the checks that need no configuration.
    """
    usable: list[Config] = []

    def read_configuration() -> Iterator[Finding]:
        config, finding = configuration(file)
        if config is not None:
            usable.append(config)
        yield finding

    installed = "hippod was installed"
    checks: list[NamedCheck] = [
        ("python", lambda: [python(sys.version_info[:2])]),
        ("clock", lambda: [clock(time.time(), Path(__file__).stat().st_mtime, installed)]),
        ("configuration", read_configuration),
    ]
    yield from findings_within(CONFIGURATION_TIMEOUT_S, checks)
    path = usable[0].file if usable else file
    if path is not None:
        yield from guarded("configuration directory", lambda: directory_permissions(path.absolute().parent))
    for config in usable:
        yield from inspect_config(config)


def inspect_config(config: Config) -> Iterator[Finding]:
    """Yields the findings of the checks that need a valid configuration."""
    sources = [(kind.table, partial(kind.inspect, config.tables(kind))) for kind in SOURCE_KINDS]
    yield from findings_within(TIMEOUT_S, [*((each.__name__, partial(each, config)) for each in CHECKS), *sources])


def findings_within(limit_s: float, checks: Sequence[NamedCheck]) -> Iterator[Finding]:
    """Runs the checks concurrently and yields their findings in order. A check that has not finished after `limit_s` seconds
    gets a warning, and continues in a thread that does not delay the end of Python."""
    end = time.monotonic() + limit_s
    started = [(name, _start(name, check)) for name, check in checks]
    for name, found in started:
        try:
            while (finding := found.get(timeout=max(end - time.monotonic(), 0.0))) is not None:
                yield finding
        except Empty:
            hint = "the machine is busy, or a drive or server that this check uses does not answer; try again later"
            yield Finding(name, "warn", f"this check did not finish within {limit_s:g} s", hint)


def _start(name: str, check: Callable[[], Iterable[Finding]]) -> SimpleQueue[Finding | None]:
    """Returns a queue that receives the findings, then None."""
    found: SimpleQueue[Finding | None] = SimpleQueue()

    def run() -> None:
        try:
            for finding in guarded(name, check):
                found.put(finding)
        finally:
            found.put(None)

    Thread(target=run, name=f"check {name}", daemon=True).start()
    return found
