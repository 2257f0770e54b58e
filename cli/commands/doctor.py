"""doctor: finds problems of the installation and says how to fix them."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from cli.client.address import Address, find_config
from cli.errors import CommandError, Exit
from cli.options.global_options import Invocation, json_option, pass_invocation
from daemon.contract.finding import Finding, guarded


@click.command()
@json_option
@pass_invocation
def doctor(invocation: Invocation) -> None:
    """Check this machine, the configuration, the socket, and the state of the daemon.

    Each check prints one line: ok, warn or fail, and what to do. The exit code is that of the worst failure.
    """
    from cli.render.doctor import finding_lines

    checks = list(_checks(invocation))
    invocation.emit({"checks": [check.to_json() for check in checks]}, lambda: finding_lines(checks), wrap=False)
    code = worst(checks)
    if code is not Exit.DONE:
        sys.exit(code)


def worst(findings: Iterable[Finding]) -> Exit:
    """Return the highest exit code of the failed checks. Warnings do not count."""
    return max((Exit(each.exit_code) for each in findings if each.status == "fail"), default=Exit.DONE)


def _checks(invocation: Invocation) -> Iterator[Finding]:
    import os

    from cli.doctor.daemon import daemon
    from cli.doctor.server_inspection import find_hippod, inspection

    file = find_config(os.environ, Path.cwd())
    yield from guarded("inspection", lambda: inspection(file, find_hippod()))
    try:
        address: Address = invocation.address()
    except CommandError as failure:
        yield Finding("socket", "fail", failure.message, failure.hint or "", failure.code)
        return
    yield from daemon(address, invocation.client)
