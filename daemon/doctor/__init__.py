"""`hippod --inspect`: what would keep hippod from running well here, found without starting it. `hippoctl doctor` shows it.

Nothing is written, no lock is taken for longer than it takes to see whether somebody has it, and every look elsewhere (a
model's server, a broker) has a time limit.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from daemon.config import Config
from daemon.contract.finding import Finding, guarded
from daemon.doctor.clock import clock
from daemon.doctor.configuration import configuration, directory_permissions
from daemon.doctor.connectivity import encoder, llm
from daemon.doctor.disk import disk
from daemon.doctor.formats import formats, programs
from daemon.doctor.label_rights import label_rights
from daemon.doctor.machine import memory, open_files, packages, python
from daemon.doctor.secrets import secrets
from daemon.doctor.socket_rights import socket_rights
from daemon.doctor.store import store
from daemon.doctor.worker import worker
from daemon.sources.registry import SOURCE_KINDS

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


def inspect(file: Path | None) -> Iterator[Finding]:
    """All findings, of which a failed check is one too. `file` as `hippod --config` takes it.

    Where the configuration cannot be used, only what needs none is checked.
    """
    yield from guarded("python", lambda: [python(sys.version_info[:2])])
    installed = "hippod was installed"
    yield from guarded("clock", lambda: [clock(time.time(), Path(__file__).stat().st_mtime, installed)])
    config, finding = configuration(file)
    yield finding
    path = file if config is None else config.file
    if path is not None:
        yield from guarded("configuration directory", lambda: directory_permissions(path.absolute().parent))
    if config is not None:
        yield from inspect_config(config)


def inspect_config(config: Config) -> Iterator[Finding]:
    """What is found with a configuration that is valid."""
    for check in CHECKS:
        yield from guarded(check.__name__, partial(check, config))
    for kind in SOURCE_KINDS:
        yield from guarded(kind.table, partial(kind.inspect, config.tables(kind)))
