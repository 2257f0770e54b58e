"""`doctor` on a terminal: one line a check, and what to do below those that are not well."""

from collections.abc import Sequence

from rich.text import Text

from cli.render.lines import STATES, text
from daemon.contract.finding import Finding


def doctor(checks: Sequence[Finding]) -> list[Text]:
    longest = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        hint = f" — {check.hint}" if check.hint else ""
        mark = (f"{check.status:<4}", STATES[check.status])
        lines.append(text(mark, f"  {check.name:<{longest}}  ", check.detail, hint))
    return lines
