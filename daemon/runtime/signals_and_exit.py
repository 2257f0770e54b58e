"""Signals, and the end of the process: SIGTERM and SIGINT stop the daemon; SIGHUP reloads its configuration.

A signal only sets an event; `daemon.app.lifecycle` waits for these events. `start_exit_timer` ends the process if a stop takes
too long: a hanging thread cannot be cancelled, and Python waits for it at exit. `QuickExit` skips Python's finalisation, which
takes some tenths of a second for a loaded daemon and only delays a restart: the system frees the memory anyway.
"""

import asyncio
import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
TIMER_SHARE = 0.95
"""Share of the stop time after which the exit timer ends the process. Ending takes some of the remaining time."""
LOG_WAIT_MAX_S = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SignalEvents:
    """Requests that signals have made. Reloads requested during the start cause one reload after it."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    reload: asyncio.Event = field(default_factory=asyncio.Event)


def handle_early_signals() -> None:
    """Installs handlers for the time until `handle_signals`: a stop ends the process.

    A reload is ignored, because the configuration file was just read.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda _number, _frame: sys.exit(0))


def handle_signals() -> SignalEvents:
    """Installs the handlers on the running event loop."""
    events = SignalEvents()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, events.stop.set)
    loop.add_signal_handler(signal.SIGHUP, events.reload.set)
    return events


class QuickExit:
    """Ends the process at exit, without Python's finalisation. Create it before any other `atexit` registration, because the
    first registration runs last.

    `code` is the exit status. If `code` is None, Python exits normally, so that an exception determines the status.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        atexit.register(self._end)

    def _end(self) -> None:
        if self.code is None:
            return
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(self.code)


def start_exit_timer(timeout_s: float, code: int = 0) -> threading.Timer:
    """Ends the process with `code` shortly before `timeout_s` seconds have passed, unless it has ended before.

    The effect is that of a power failure: the store opens at its last commit, unfinished work is repeated, and child processes
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
    # Log in a thread, because logging may hang too.
    logging = threading.Thread(target=_log, args=(hanging, timeout_s), name="exit log", daemon=True)
    with suppress(RuntimeError):  # at interpreter shutdown no thread can be started
        logging.start()
        logging.join(min(LOG_WAIT_MAX_S, timeout_s * (1 - TIMER_SHARE) / 2))
    os._exit(code)


def _log(hanging: list[str], timeout_s: float) -> None:
    log.warning("stop_cut_off", stop_timeout_s=timeout_s, threads=hanging)
    with suppress(OSError, ValueError):
        sys.stderr.flush()
