"""Where every thread stood when hippod was aborted (by the watchdog, or by a library's fault), as an event of the next start.

The interpreter writes the stacks in the signal's handler, as lines of text: no Python code can run then. In the journal they
are to be one entry, so there they go into a file in the store's folder, and the next start logs them. Elsewhere they go to
stderr at once.
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
    """`folder` is the store's, whose lock this process has: the file is written by no other."""
    if not is_journal(sys.stderr):
        faulthandler.enable()
        return
    path = folder / FILE_NAME
    try:
        before = path.read_bytes()[:STACKS_BYTES_MAX].decode(errors="replace") if path.exists() else ""
        # It stays open for as long as the process lives: the handler of a signal can open nothing.
        faulthandler.enable(path.open("wb"))
    except OSError as error:  # a full disk, say: stacks in plain lines are better than none
        log.warning("crash_stacks_not_kept", error=error)
        faulthandler.enable()
        return
    if before.strip():
        lines = [line.strip() for line in before.splitlines() if line.strip()]
        log.error("aborted_before", stacks=[line for line in lines if not line.startswith("Extension modules:")])
