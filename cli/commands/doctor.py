"""doctor: finds problems of the installation and says how to fix them."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cli.client.address import Address, find_config
from cli.errors import CommandError, Exit
from cli.options.global_options import Invocation, command
from cli.render.lines import STATE_STYLES, text
from cli.render.styled_text import Text
from daemon.contract.finding import Finding, guarded


@command("doctor")
def doctor(invocation: Invocation) -> None:
    """Each check prints one line: ok, warn or fail, and what to do. The exit code is that of the worst failure."""
    checks = list(_checks(invocation))
    invocation.emit({"checks": [check.to_json() for check in checks]}, lambda: _finding_lines(checks), wrap=False)
    code = worst(checks)
    if code is not Exit.DONE:
        sys.exit(code)


def worst(findings: Iterable[Finding]) -> Exit:
    """Returns the highest exit code of the failed checks. Warnings do not count."""
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


def _finding_lines(checks: Sequence[Finding]) -> list[Text]:
    longest = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        hint = f" — {check.hint}" if check.hint else ""
        mark = (f"{check.status:<4}", STATE_STYLES[check.status])
        lines.append(text(mark, f"  {check.name:<{longest}}  ", check.detail, hint))
    return lines
