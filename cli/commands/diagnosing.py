"""doctor: what is not as it should be, and what to do."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from cli.address import Address, find_config, read_config
from cli.checks.check import Check, worst
from cli.errors import Exit, Failure
from cli.session import Session, json_option, pass_session


@click.command()
@json_option
@pass_session
def doctor(session: Session) -> None:
    """Check this machine, the configuration, the socket, and what the daemon says of itself.

    One line each: ok, warn or fail, and what to do. The exit code is that of the worst failure.
    """
    from cli.render.doctor import doctor as page

    checks = list(_checks(session))
    session.emit({"checks": [check.to_json() for check in checks]}, lambda: page(checks), wrap=False)
    code = worst(checks)
    if code is not Exit.DONE:
        sys.exit(code)


def _checks(session: Session) -> Iterator[Check]:
    import os

    from cli.checks.configuration import configuration
    from cli.checks.daemon import daemon
    from cli.checks.machine import machine

    path, config, broken = _config(find_config(os.environ, Path.cwd()))
    base = path.parent if path else Path.cwd()
    yield from machine(config, base)
    if broken:
        yield broken
    else:
        yield from configuration(path, config)
    try:
        address: Address = session.address()
    except Failure as failure:
        yield Check("socket", "fail", failure.message, failure.hint or "", failure.code)
        return
    yield from daemon(address, session.client)


def _config(path: Path | None) -> tuple[Path | None, Mapping[str, Any], Check | None]:
    try:
        return path, read_config(path) if path else {}, None
    except Failure as failure:
        return path, {}, Check("configuration", "fail", failure.message, f"mend {path}", Exit.USAGE)
