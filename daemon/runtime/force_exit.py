"""Ends a stop that takes too long: a thread that hangs in a call cannot be cancelled, and Python waits for it at exit."""

import os
import sys
import threading
from contextlib import suppress

import structlog

TIMER_SHARE = 0.95
"""Share of the stop time after which the process is ended; the rest is for ending it."""
LOG_WAIT_MAX_S = 1.0

log = structlog.get_logger()


def start_exit_timer(timeout_s: float, code: int = 0) -> threading.Timer:
    """Ends the process with `code` shortly before `timeout_s` seconds have passed, unless it has ended by then.

    The effect is that of a power failure: the store opens at its last commit, unfinished work is done again, and the children
    end with their parent.
    """
    timer = threading.Timer(timeout_s * TIMER_SHARE, _exit, (code, timeout_s))
    timer.name = "exit timer"
    timer.daemon = True
    timer.start()
    return timer


def _exit(code: int, timeout_s: float) -> None:
    others = [each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]
    hanging = sorted(each.name for each in others)
    # In a thread, because logging may hang too.
    logging = threading.Thread(target=_log, args=(hanging, timeout_s), name="exit log", daemon=True)
    with suppress(RuntimeError):  # at interpreter shutdown no thread can be started
        logging.start()
        logging.join(min(LOG_WAIT_MAX_S, timeout_s * (1 - TIMER_SHARE) / 2))
    os._exit(code)


def _log(hanging: list[str], timeout_s: float) -> None:
    log.warning("stop_cut_off", stop_timeout_s=timeout_s, threads=hanging)
    with suppress(OSError, ValueError):
        sys.stderr.flush()
