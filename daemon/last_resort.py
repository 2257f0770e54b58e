"""The end of a stop that does not end: a thread that hangs in a call cannot be cancelled, and Python waits for it at exit."""

import os
import sys
import threading
from contextlib import suppress

import structlog

SHARE = 0.95
"""Of the time that stopping may take; the rest is for the process to end in."""

log = structlog.get_logger()


def arm(allowed_s: float, code: int = 0) -> threading.Timer:
    """Ends the process with `code` shortly before `allowed_s` seconds are over, unless it has ended by itself.

    What is cut off is what a power loss would cut off: the store opens at its last commit, what was in flight is read
    again, and the children end with their parent.
    """
    timer = threading.Timer(allowed_s * SHARE, _end, (code, allowed_s))
    timer.name = "last-resort"
    timer.daemon = True
    timer.start()
    return timer


def _end(code: int, allowed_s: float) -> None:
    others = [each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]
    hanging = sorted(each.name for each in others)
    # Whatever the log hangs in must not hang this.
    saying = threading.Thread(target=_say, args=(hanging, allowed_s), name="last-words", daemon=True)
    with suppress(RuntimeError):  # the interpreter is too far gone for another thread
        saying.start()
        saying.join(min(1.0, allowed_s * (1 - SHARE) / 2))
    os._exit(code)


def _say(hanging: list[str], allowed_s: float) -> None:
    log.warning("stop_cut_off", stop_timeout_s=allowed_s, threads=hanging)
    with suppress(OSError, ValueError):
        sys.stderr.flush()
