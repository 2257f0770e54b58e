"""Watches over the daemon while it serves: says what it does, feeds the service manager's watchdog while all of it moves."""

import asyncio
import time
from collections.abc import Callable

import structlog

from daemon.liveness import Liveness, Part
from daemon.notify import Notifier
from daemon.pipeline.pipeline import Pipeline

TICK_S = 5.0
STILL_S = 120.0
"""How long a part may stand still where no service manager says."""
STILL_SHARE = 0.75
"""Of the time that a service manager allows: with a tick on top, a part that stands still is not vouched for after it."""
SLOW_COMMIT_S = 120.0
"""A batch that takes longer is complained of, once in `COMPLAIN_S`."""
COMPLAIN_S = 60.0
STARTING_S = 60.0
"""How long opening may stand still before the service manager is no longer asked for more time."""

log = structlog.get_logger()


class PipelineEnded(RuntimeError):
    """A part of the pipeline that runs for ever has ended: a bug. A supervisor starts hippod anew."""


def still_s(notifier: Notifier) -> float:
    """How long a part may stand still, in seconds."""
    return STILL_S if notifier.watchdog_s is None else notifier.watchdog_s * STILL_SHARE


def tick_s(notifier: Notifier) -> float:
    """How often to look."""
    return TICK_S if notifier.watchdog_s is None else min(TICK_S, notifier.watchdog_s * (1 - STILL_SHARE) / 2)


async def watch(
    stop: asyncio.Task[bool], pipeline: Pipeline, notifier: Notifier, liveness: Liveness, standing: Callable[[], str]
) -> None:
    """Returns when `stop` is done. PipelineEnded when the pipeline is."""
    said = ""
    known: set[str] = set()
    slow = _SlowCommits(pipeline)
    while not stop.done():
        stuck = liveness.stuck()
        if not pipeline.alive():
            log.critical("pipeline_ended", hint="this is a bug; hippod stops so that its supervisor starts it anew")
            raise PipelineEnded("the pipeline ended by itself")
        if not stuck:
            notifier.watchdog()
        for each in stuck:
            if each.part not in known:
                log.critical("stuck", part=each.part, took_ms=round(each.seconds * 1000), at=each.at)
        for part in known - {each.part for each in stuck}:
            log.warning("moves_again", part=part)
        known = {each.part for each in stuck}
        slow.complain()
        text = standing()
        if known:
            text = f"stuck: {', '.join(sorted(known))}; {text}"
        if text != said:
            notifier.status(text)
            said = text
        await asyncio.wait([stop], timeout=tick_s(notifier))


async def ask_for_time(notifier: Notifier, opening: Part) -> None:
    """Tells the service manager, until cancelled, that starting goes on, as long as it does."""
    while True:
        now = time.monotonic()
        if now - opening.moved_at(now) < STARTING_S:
            notifier.extend_timeout(2 * STARTING_S)
        await asyncio.sleep(TICK_S)


class _SlowCommits:
    """A batch that takes minutes is slow hardware or a fault; either way somebody must be able to see it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._said = -COMPLAIN_S

    def complain(self) -> None:
        since, now = self._pipeline.committer.busy_since, time.monotonic()
        if since is not None and now - since > SLOW_COMMIT_S and now - self._said >= COMPLAIN_S:
            self._said = now
            log.warning("commit_slow", took_ms=round((now - since) * 1000), pending=len(self._pipeline.intake))
