"""Detects outages of the model. After a failed call it sends a question of a few tokens: if that fails too, the model is
unavailable; otherwise the passage caused the failure."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from daemon.pipeline.outage import Dependency, Outage
from memory.llm.errors import ModelDown

PROBE_MAX_PAUSE_S = 30.0
TROUBLE_GRACE_S = 2.0
"""Duration after which failing calls are reported, even before an outage is confirmed."""

log = structlog.get_logger()


class ModelOutage:
    """Tracks whether the model answers. Use on the event loop only.

    `probe` returns if the model answers and raises ModelDown if not; it is None if there is no server. `waiting` returns the
    number of passages that wait for the model.
    """

    def __init__(self, probe: Callable[[], Awaitable[None]] | None, waiting: Callable[[], int]) -> None:
        self._probe = probe
        self._waiting = waiting
        self._trouble: Outage | None = None
        self._server = Dependency(PROBE_MAX_PAUSE_S)
        self._began = asyncio.Event()
        self.up = asyncio.Event()
        self.up.set()

    @property
    def current(self) -> Outage | None:
        """The outage, or calls that have failed for `TROUBLE_GRACE_S`; None if the model answers."""
        if self._server.outage is not None:
            return self._server.outage
        trouble = self._trouble
        return trouble if trouble is not None and time.time() - trouble.since > TROUBLE_GRACE_S else None

    def note_call(self, outcome: str, good: bool) -> None:
        """Records the outcome of a call, so that failures are known before all retries are used up."""
        if good:
            self._trouble = None
        elif self._trouble is None:
            why = f"calls to the model fail ({outcome})"
            self._trouble = Outage("model_down", why, time.time(), why)

    async def confirm(self) -> bool:
        """Probes the model after a failed call; returns whether it is unavailable.

        The reported reason is the probe's error, because an error about a passage may contain the passage's text.
        """
        if self._server.outage is None:
            error = await self._probe_error()
            if error is not None and self._server.outage is None:
                since = self._trouble.since if self._trouble is not None else None
                self._server.failed("model_down", error, since=since, waiting=self._waiting())
                self.up.clear()
                self._began.set()
        return self._server.outage is not None

    async def _probe_error(self) -> ModelDown | None:
        """Returns the error of a probe, None if the model answers."""
        if self._probe is None:
            return None
        try:
            await self._probe()
        except ModelDown as error:
            return error
        return None

    async def run(self) -> None:
        """Waits for outages and probes the model until it is back. Runs until cancelled."""
        while True:
            await self._began.wait()
            self._began.clear()
            while (error := await self._probe_error()) is not None:
                await self._server.wait("model_down", error, waiting=self._waiting())
            since = self._server.outage.since if self._server.outage is not None else time.time()
            log.info("model_back", waited_s=round(time.time() - since, 1), waiting=self._waiting())
            self._trouble = None
            self._server.restored()
            self.up.set()
