"""`doctor` on a terminal: one line per check, with a hint if it is not ok."""

from collections.abc import Sequence

from cli.render.lines import STATE_STYLES, text
from cli.render.styled_text import Text
from daemon.contract.finding import Finding


def finding_lines(checks: Sequence[Finding]) -> list[Text]:
    longest = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        hint = f" — {check.hint}" if check.hint else ""
        mark = (f"{check.status:<4}", STATE_STYLES[check.status])
        lines.append(text(mark, f"  {check.name:<{longest}}  ", check.detail, hint))
    return lines
