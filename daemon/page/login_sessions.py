"""Logins with the token. Their cookies are kept in memory only, so logins end with the daemon."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

SESSION_LIFETIME_S = 12 * 3600.0
SESSIONS_MAX = 64
"""Maximum concurrent sessions. A further one ends the oldest session of the client with the most sessions."""
SESSIONS_PER_CLIENT = 16
"""Maximum sessions of one client. A further one ends the oldest session of the client's address with the most sessions."""


@dataclass(frozen=True, slots=True)
class LoginSession:
    """A login. `token` was sent at the login and is checked again with each request, so the login ends with its token."""

    token: bytes
    ends: float
    client: str
    """The client that the token belongs to."""
    address: str
    """The address that logged in: people may share a token."""


class LoginSessions:
    """The logins, looked up by a digest of their cookie, so that the duration of a look-up reveals nothing about cookies."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[bytes, LoginSession] = {}

    def begin(self, token: bytes, client: str, address: str) -> str:
        """Begins a session; returns its cookie."""
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
        """Ends the oldest session of the address from which `client` has the most sessions."""
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
