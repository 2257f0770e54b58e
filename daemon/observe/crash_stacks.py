"""Keeps the stacks of all threads if hippod is aborted, by the watchdog or by a fault of a library.

The interpreter writes the stacks as lines of text in the signal's handler, because no Python code can run then. Under systemd,
where each line would become an entry of the journal, it writes them to a file in the store's folder, and the next start logs
them as one event. Otherwise it writes them to stderr.
"""

import faulthandler
import sys
from pathlib import Path

import structlog

from daemon.observe.logs import is_journal

FILE_NAME = "stacks-of-abort.txt"
STACKS_BYTES_MAX = 64 * 1024

log = structlog.get_logger()


def keep_crash_stacks(folder: Path) -> None:
    """Enables the handler, and logs the stacks of the last abort. `folder` is the store's, whose lock the caller holds."""
    if not is_journal(sys.stderr):
        faulthandler.enable()
        return
    path = folder / FILE_NAME
    try:
        before = path.read_bytes()[:STACKS_BYTES_MAX].decode(errors="replace") if path.exists() else ""
        # The file stays open, because a signal's handler cannot open one.
        faulthandler.enable(path.open("wb"))
    except OSError as error:  # such as a full disk: write the stacks to stderr instead
        log.warning("crash_stacks_not_kept", error=error)
        faulthandler.enable()
        return
    if before.strip():
        lines = [line.strip() for line in before.splitlines() if line.strip()]
        log.error("aborted_before", stacks=[line for line in lines if not line.startswith("Extension modules:")])
