"""Whether the model answers. After a failed call it is asked a question of a few tokens: where that fails too, the model is
away; else the passage was at fault."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from memory.llm.errors import ModelDown

PROBE_MIN_PAUSE_S, PROBE_MAX_PAUSE_S = 1.0, 30.0
TROUBLE_GRACE_S = 2.0
"""Failing calls are reported once they have lasted this long, before they are known to be an outage."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outage:
    """Why nothing is read, and since when (Unix seconds). `loggable`: the reason as it may stand in the log."""

    reason: str
    since: float
    loggable: str


class ModelOutage:
    """On the event loop. `probe` returns when the model answers; None where there is no server that could be away.

    `waiting` says how many passages wait for the model.
    """

    def __init__(self, probe: Callable[[], Awaitable[None]] | None, waiting: Callable[[], int]) -> None:
        self._probe = probe
        self._waiting = waiting
        self._trouble: Outage | None = None
        self._outage: Outage | None = None
        self._began = asyncio.Event()
        self.up = asyncio.Event()
        self.up.set()

    @property
    def current(self) -> Outage | None:
        """The outage, or failing calls that have lasted a while; None where the model answers."""
        if self._outage is not None:
            return self._outage
        trouble = self._trouble
        return trouble if trouble is not None and time.time() - trouble.since > TROUBLE_GRACE_S else None

    def note_call(self, outcome: str, good: bool) -> None:
        """A call to the model ended: so trouble is known before it has lasted through every retry."""
        if good:
            self._trouble = None
        elif self._trouble is None:
            why = f"calls to the model fail ({outcome})"
            self._trouble = Outage(why, time.time(), why)

    async def confirm(self) -> bool:
        """Whether the model is away, asked after a call failed.

        The reason that is reported is the probe's: its question holds no document's text, and the passage's did.
        """
        if self._outage is None:
            error = await self._probe_error()
            if error is not None and self._outage is None:
                since = self._trouble.since if self._trouble is not None else time.time()
                self._outage = Outage(str(error), since, error.loggable)
                self.up.clear()
                self._began.set()
                log.warning("model_down", error=error, waiting=self._waiting())
        return self._outage is not None

    async def _probe_error(self) -> ModelDown | None:
        """Why the model does not answer, None where it does."""
        if self._probe is None:
            return None
        try:
            await self._probe()
        except ModelDown as error:
            return error
        return None

    async def run(self) -> None:
        """Finds out when the model is back, until cancelled."""
        while True:
            await self._began.wait()
            self._began.clear()
            pause = PROBE_MIN_PAUSE_S
            while await self._probe_error() is not None:
                await asyncio.sleep(pause)
                pause = min(pause * 2, PROBE_MAX_PAUSE_S)
            since = self._outage.since if self._outage is not None else time.time()
            log.info("model_back", waited_s=round(time.time() - since, 1), waiting=self._waiting())
            self._outage = self._trouble = None
            self.up.set()
