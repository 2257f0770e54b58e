"""Runs `hippod --inspect`, the part of `doctor` that needs the server's code but no running daemon."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.errors import Exit
from cli.terminal_text import one_line, truncate
from daemon.contract.finding import Finding, Verdict

INSPECT_TIMEOUT_S = 150.0
"""More than the time limits of hippod's own checks (`daemon.doctor`) and its start on a busy machine."""


def inspection(file: Path | None, hippod: str | None) -> Iterator[Finding]:
    """Yields the findings of the program `hippod` about the configuration `file`, or about the one that it finds itself."""
    if hippod is None:
        hint = "install hippod here, or run this command on the machine where hippod is"
        yield Finding("inspection", "warn", "nothing was inspected: hippod is not installed next to hippoctl", hint)
        return
    command = [hippod, *([] if file is None else ["--config", str(file)]), "--inspect"]
    detail = "it cannot be run"
    try:
        done = subprocess.run(  # noqa: S603 - the program installed next to this one, no shell
            command, capture_output=True, timeout=INSPECT_TIMEOUT_S, check=False
        )
        detail = one_line(done.stderr.decode("utf-8", "replace")) or "it prints nothing"
        found = [_finding(each) for each in json.loads(done.stdout)["findings"]]
    except subprocess.TimeoutExpired:
        hint = "the machine is busy, or the disk with hippod's program hangs; try again later"
        yield Finding("inspection", "fail", f"`hippod --inspect` did not finish within {INSPECT_TIMEOUT_S:g} s", hint)
    except (OSError, ValueError, KeyError, TypeError):
        yield Finding("inspection", "fail", truncate(detail, 400), "install hippod again")
    else:
        yield from found


def find_hippod() -> str | None:
    """Returns the path of the hippod that is installed next to hippoctl, or of the one on $PATH."""
    beside = Path(sys.executable).parent / "hippod"
    return str(beside) if beside.is_file() else shutil.which("hippod")


def _finding(found: Mapping[str, Any]) -> Finding:
    status: Verdict = "fail" if found["status"] == "fail" else "ok" if found["status"] == "ok" else "warn"
    name, detail, hint = (one_line(str(found.get(key, ""))) for key in ("name", "detail", "hint"))
    # An invalid configuration is a usage error, as in `hippod --check`.
    return Finding(name, status, detail, hint, Exit.USAGE if name == "configuration" else Exit.FAILED)
