"""Signals: SIGTERM and SIGINT stop the daemon, SIGHUP reloads its configuration.

A signal only sets an event; `daemon.app.lifecycle` waits for these events.
"""

import asyncio
import signal
import sys
from dataclasses import dataclass, field

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class SignalEvents:
    """Requests made by signals. Reloads requested during the start are done once, after it."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    reload: asyncio.Event = field(default_factory=asyncio.Event)


def before_event_loop() -> None:
    """Handles signals until `handle` is called: a stop ends the process; a reload is ignored, as the file was just read."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda _number, _frame: sys.exit(0))


def handle() -> SignalEvents:
    """Installs the handlers on the running event loop."""
    events = SignalEvents()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, events.stop.set)
    loop.add_signal_handler(signal.SIGHUP, events.reload.set)
    return events
