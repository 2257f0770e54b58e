"""Waits for an unavailable dependency: a model, an encoder's server, brokers, a full disk, the parser processes.

Each part of hippod has a `Dependency` for each resource that may be unavailable. After a failed attempt, `status` and the log
show the reason. The part retries after pauses with jitter until an attempt succeeds. After a failed call of the model,
`ModelOutage` sends a question of a few tokens. If this question fails too, the model is unavailable; otherwise the passage is
the cause.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from daemon.observe.logs import is_own_error, loggable
from daemon.observe.redaction import system_error
from memory.encoder.errors import EncoderRefused, EncoderServerDown
from memory.llm.errors import ModelDown

MIN_PAUSE_S = 1.0
"""Pause after the first failed attempt; it doubles with each further failure."""
JITTER_SHARE = 0.2
"""Maximum relative change of a pause, so that many waiting processes do not retry at the same moment."""
LOG_INTERVAL_S = 60.0
"""Minimum interval between log lines of the same error in one outage."""

PROBE_MAX_PAUSE_S = 30.0
SUSPECTED_S = 2.0
"""Time after which failing calls are reported as an outage, even if unconfirmed."""

Result = TypeVar("Result")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outage:
    """Why work waits, and since when (in Unix seconds). `event` names the outage in the log. `loggable` is the reason without
    document content."""

    event: str
    reason: str
    since: float
    loggable: str


class Dependency:
    """A resource that may be unavailable. Use from one thread only. Pauses grow up to `max_pause_s` seconds."""

    def __init__(self, max_pause_s: float) -> None:
        self._max_pause_s = max_pause_s
        self._pause_s = 0.0
        self._logged: tuple[object, ...] = ()
        self._log_at = 0.0
        self.outage: Outage | None = None
        """Set by the first failed attempt; None after a successful one."""

    @property
    def problem(self) -> str | None:
        """The reason for the outage, or None."""
        return None if self.outage is None else self.outage.reason

    def failed(
        self, event: str, error: Exception, what: str = "", since: float | None = None, **fields: object
    ) -> float:
        """Records a failed attempt and logs `event` with `fields`; returns the seconds to wait before the next attempt.

        `what` precedes the error in the reason. `since` is the beginning of the outage; None means now.
        """
        head = f"{what}: " if what else ""
        text = str(error) if is_own_error(error) else f"{type(error).__name__}: {error}"
        began = self.outage.since if self.outage is not None else since or time.time()
        self.outage = Outage(event, head + text, began, head + loggable(error))
        self._pause_s = min(2 * self._pause_s or MIN_PAUSE_S, self._max_pause_s)
        kind, now = (event, type(error), system_error(error)), time.monotonic()
        if kind != self._logged or now >= self._log_at:
            self._logged, self._log_at = kind, now + LOG_INTERVAL_S
            log.warning(event, error=error, retry_s=self._pause_s, **fields)
        return self._pause_s * random.uniform(1 - JITTER_SHARE, 1 + JITTER_SHARE)

    def restored(self) -> None:
        """Records a successful attempt."""
        self.outage, self._pause_s = None, 0.0

    async def wait(self, event: str, error: Exception, what: str = "", **fields: object) -> None:
        """Records a failed attempt like `failed`; returns when the next attempt is due."""
        await asyncio.sleep(self.failed(event, error, what, None, **fields))

    async def until_done(
        self,
        event: str,
        attempt: Callable[[], Awaitable[Result]],
        is_unavailable: Callable[[Exception], bool],
        what: str = "",
        **fields: object,
    ) -> Result:
        """Repeats `attempt` until it succeeds; returns its result. Raises errors for which `is_unavailable` is false."""
        while True:
            try:
                result = await attempt()
            except Exception as error:
                if not is_unavailable(error):
                    raise
                await self.wait(event, error, what, **fields)
            else:
                self.restored()
                return result


def encoder_is_unavailable(error: Exception) -> bool:
    """Returns whether the encoder's server is unavailable; false if it only refuses a text."""
    return isinstance(error, EncoderServerDown) and not isinstance(error, EncoderRefused)


class ModelOutage:
    """Tracks whether the model answers. Use on the event loop only.

    `probe` returns if the model answers, and raises ModelDown if not; it is None if there is no server. `waiting` returns the
    number of passages that wait for the model.
    """

    def __init__(self, probe: Callable[[], Awaitable[None]] | None, waiting: Callable[[], int]) -> None:
        self._probe = probe
        self._waiting = waiting
        self._suspected: Outage | None = None
        self._server = Dependency(PROBE_MAX_PAUSE_S)
        self._began = asyncio.Event()
        self.up = asyncio.Event()
        self.up.set()

    @property
    def current(self) -> Outage | None:
        """The outage, confirmed or assumed because calls have failed for `SUSPECTED_S`; None if the model answers."""
        if self._server.outage is not None:
            return self._server.outage
        suspected = self._suspected
        return suspected if suspected is not None and time.time() - suspected.since > SUSPECTED_S else None

    def note_call(self, outcome: str, good: bool) -> None:
        """Records the outcome of a call, so that failures are visible before all retries have failed."""
        if good:
            self._suspected = None
        elif self._suspected is None:
            why = f"calls to the model fail ({outcome})"
            self._suspected = Outage("model_down", why, time.time(), why)

    async def confirm(self) -> bool:
        """Probes the model after a failed call; returns whether the model is unavailable.

        The reported reason is the probe's error: an error about a passage may contain the passage's text.
        """
        if self._server.outage is None:
            error = await self._probe_error()
            if error is not None and self._server.outage is None:
                since = self._suspected.since if self._suspected is not None else None
                self._server.failed("model_down", error, since=since, waiting=self._waiting())
                self.up.clear()
                self._began.set()
        return self._server.outage is not None

    async def _probe_error(self) -> ModelDown | None:
        """Returns the error of a probe; None if the model answers."""
        if self._probe is None:
            return None
        try:
            await self._probe()
        except ModelDown as error:
            return error
        return None

    async def run(self) -> None:
        """During outages, probes the model until it answers. Runs until cancelled."""
        while True:
            await self._began.wait()
            self._began.clear()
            while (error := await self._probe_error()) is not None:
                await self._server.wait("model_down", error, waiting=self._waiting())
            since = self._server.outage.since if self._server.outage is not None else time.time()
            log.info("model_back", waited_s=round(time.time() - since, 1), waiting=self._waiting())
            self._suspected = None
            self._server.restored()
            self.up.set()
