"""Who has logged in with the token: cookies in memory, gone with the daemon."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

LIFE_S = 12 * 3600.0
MOST = 64
"""Sessions at once; a new one ends the oldest."""


@dataclass(frozen=True, slots=True)
class Session:
    """`token`: what was sent at the login. It is shown to the guard at each request, so that a session ends with its token."""

    token: bytes
    ends: float


class Sessions:
    """By the digest of their cookie: what is looked up tells nothing, by the time it takes, of what is kept."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[bytes, Session] = {}

    def begin(self, token: bytes) -> str:
        """The new session's cookie."""
        while len(self._open) >= MOST:
            del self._open[next(iter(self._open))]
        cookie = secrets.token_urlsafe(32)
        self._open[_digest(cookie)] = Session(token, self._clock() + LIFE_S)
        return cookie

    def find(self, cookie: str) -> Session | None:
        session = self._open.get(_digest(cookie)) if cookie else None
        if session is not None and session.ends <= self._clock():
            self.end(cookie)
            return None
        return session

    def end(self, cookie: str) -> None:
        self._open.pop(_digest(cookie), None)


def _digest(cookie: str) -> bytes:
    return sha256(cookie.encode()).digest()
