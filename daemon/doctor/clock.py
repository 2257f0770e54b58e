"""Checks the machine's clock against times that must have passed."""

import time

from daemon.contract.finding import Finding

CLOCK_TOLERANCE_S = 120.0


def clock(now: float, passed: float, event: str) -> Finding:
    """Warns if `now` is before the past `event`, which happened at `passed` (both in Unix seconds)."""
    text = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(now))
    if now + CLOCK_TOLERANCE_S >= passed:
        return Finding("clock", "ok", text)
    when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(passed))
    hint = "set the clock, or start a time service (timedatectl)"
    return Finding("clock", "warn", f"{text}, which is before {event} ({when})", hint)
