"""Signals: SIGTERM and SIGINT stop the daemon, SIGHUP has it reload its configuration.

A signal only sets an event; `daemon.app.lifecycle` waits for these events.
"""

import asyncio
import signal
import sys
from dataclasses import dataclass, field

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class SignalEvents:
    """What was asked for by signals. A reload that is asked for during the start is done after it; several are one."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    reload: asyncio.Event = field(default_factory=asyncio.Event)


def before_event_loop() -> None:
    """Until `handle`: a stop ends the process, as nothing runs yet; a reload is ignored, as the file has just been read."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda _number, _frame: sys.exit(0))


def handle() -> SignalEvents:
    """Takes the signals over for the running event loop."""
    events = SignalEvents()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, events.stop.set)
    loop.add_signal_handler(signal.SIGHUP, events.reload.set)
    return events
