"""Logins with the token: their cookies are kept in memory, and end with the daemon."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

SESSION_LIFETIME_S = 12 * 3600.0
SESSIONS_MAX = 64
"""Sessions at once. One more ends the oldest of the client that has most."""
SESSIONS_PER_CLIENT = 16
"""Sessions of one client. One more ends one of its own: the oldest of the address that has most."""


@dataclass(frozen=True, slots=True)
class LoginSession:
    """`token`: the one that was sent at the login. Each request is checked with it, so a session ends with its token."""

    token: bytes
    ends: float
    client: str
    """Whose token it is."""
    address: str
    """Where it logged in: people may share a token."""


class LoginSessions:
    """Looked up by the digest of their cookie, so that the time of a look-up says nothing about the cookies."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[bytes, LoginSession] = {}

    def begin(self, token: bytes, client: str, address: str) -> str:
        """The new session's cookie."""
        now = self._clock()
        for digest in [digest for digest, session in self._open.items() if session.ends <= now]:
            del self._open[digest]
        by_client = Counter(session.client for session in self._open.values())
        if by_client[client] >= SESSIONS_PER_CLIENT:
            self._end_oldest(client)
        elif len(self._open) >= SESSIONS_MAX:
            self._end_oldest(max(by_client, key=by_client.__getitem__))
        cookie = secrets.token_urlsafe(32)
        self._open[_digest(cookie)] = LoginSession(token, now + SESSION_LIFETIME_S, client, address)
        return cookie

    def _end_oldest(self, client: str) -> None:
        """Ends the oldest session of the address from which `client` has most."""
        own = {digest: session for digest, session in self._open.items() if session.client == client}
        by_address = Counter(session.address for session in own.values())
        most = max(by_address, key=by_address.__getitem__)
        del self._open[next(digest for digest, session in own.items() if session.address == most)]

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
