"""Logins with the token: their cookies are kept in memory, and end with the daemon."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

SESSION_LIFETIME_S = 12 * 3600.0
SESSIONS_MAX = 64
"""Sessions at once; a new one ends the oldest."""


@dataclass(frozen=True, slots=True)
class LoginSession:
    """`token`: the one that was sent at the login. Each request is checked with it, so a session ends with its token."""

    token: bytes
    ends: float


class LoginSessions:
    """Looked up by the digest of their cookie, so that the time of a look-up says nothing about the cookies."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[bytes, LoginSession] = {}

    def begin(self, token: bytes) -> str:
        """The new session's cookie."""
        while len(self._open) >= SESSIONS_MAX:
            del self._open[next(iter(self._open))]
        cookie = secrets.token_urlsafe(32)
        self._open[_digest(cookie)] = LoginSession(token, self._clock() + SESSION_LIFETIME_S)
        return cookie

    def find(self, cookie: str) -> LoginSession | None:
        session = self._open.get(_digest(cookie)) if cookie else None
        if session is not None and session.ends <= self._clock():
            self.end(cookie)
            return None
        return session

    def end(self, cookie: str) -> None:
        self._open.pop(_digest(cookie), None)


def _digest(cookie: str) -> bytes:
    return sha256(cookie.encode()).digest()
