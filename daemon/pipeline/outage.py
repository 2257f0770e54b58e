"""Waits for an unavailable dependency: a model, an encoder's server, brokers, a full disk, the parser processes.

Each part of hippod has a `Dependency` for what it needs. If a try fails, `status` and the log show the reason, and the part
tries again after a pause with jitter, until a try succeeds.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from daemon.observe.logs import is_ours, loggable
from daemon.observe.redaction import system_error
from memory.encoder.errors import EncoderRefused, EncoderServerDown

MIN_PAUSE_S = 1.0
"""Pause after the first failed try; it doubles with each further one."""
JITTER_SHARE = 0.2
"""Share by which a pause is longer or shorter, so that many waiting processes do not try at the same moment."""
LOG_INTERVAL_S = 60.0
"""Interval at which a repeated error of one outage is logged."""

Result = TypeVar("Result")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outage:
    """Why work waits, and since when (Unix seconds). `event` names the outage in the log. `loggable` is the reason without
    document content."""

    event: str
    reason: str
    since: float
    loggable: str


class Dependency:
    """One thing that may be unavailable. Use from one thread only. Pauses grow up to `max_pause_s` seconds."""

    def __init__(self, max_pause_s: float) -> None:
        self._max_pause_s = max_pause_s
        self._pause_s = 0.0
        self._logged: tuple[object, ...] = ()
        self._log_at = 0.0
        self.outage: Outage | None = None
        """Set from the first failed try until one succeeds."""

    @property
    def problem(self) -> str | None:
        """The reason of the outage; None if there is none."""
        return None if self.outage is None else self.outage.reason

    def failed(
        self, event: str, error: Exception, what: str = "", since: float | None = None, **fields: object
    ) -> float:
        """Records a failed try and logs `event` with `fields`; returns how many seconds to wait before the next try.

        `what` is put before the error in the reason. `since` is when the outage began, if that is known.
        """
        head = f"{what}: " if what else ""
        said = str(error) if is_ours(error) else f"{type(error).__name__}: {error}"
        began = self.outage.since if self.outage is not None else since or time.time()
        self.outage = Outage(event, head + said, began, head + loggable(error))
        self._pause_s = min(2 * self._pause_s or MIN_PAUSE_S, self._max_pause_s)
        kind, now = (event, type(error), system_error(error)), time.monotonic()
        if kind != self._logged or now >= self._log_at:
            self._logged, self._log_at = kind, now + LOG_INTERVAL_S
            log.warning(event, error=error, retry_s=self._pause_s, **fields)
        return self._pause_s * random.uniform(1 - JITTER_SHARE, 1 + JITTER_SHARE)

    def restored(self) -> None:
        """Records a successful try."""
        self.outage, self._pause_s = None, 0.0

    async def wait(self, event: str, error: Exception, what: str = "", **fields: object) -> None:
        """Records a failed try like `failed`; returns when it is time for the next one."""
        await asyncio.sleep(self.failed(event, error, what, None, **fields))

    async def until_done(
        self,
        event: str,
        attempt: Callable[[], Awaitable[Result]],
        is_away: Callable[[Exception], bool],
        what: str = "",
        **fields: object,
    ) -> Result:
        """Returns the result of the first `attempt` that succeeds. Raises its errors that are not an outage by `is_away`."""
        while True:
            try:
                result = await attempt()
            except Exception as error:
                if not is_away(error):
                    raise
                await self.wait(event, error, what, **fields)
            else:
                self.restored()
                return result


def encoder_is_away(error: Exception) -> bool:
    """Returns whether the encoder's server is unavailable, rather than that it refuses a text."""
    return isinstance(error, EncoderServerDown) and not isinstance(error, EncoderRefused)
