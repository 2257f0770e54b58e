"""The link that opens the page. It works once and starts the session of the browser that opened it."""

import secrets
import threading
from hmac import compare_digest


class OneTimeLink:
    """The link of one run of the command. The browser with the session's cookie may use the page until the command ends."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._session: str | None = None
        self._lock = threading.Lock()

    def redeem(self, token: str) -> str | None:
        """Returns the session's cookie for the right token on the first call, and None otherwise."""
        with self._lock:
            if self._session is not None or not compare_digest(token.encode(), self.token.encode()):
                return None
            self._session = secrets.token_urlsafe(32)
            return self._session

    def admits(self, cookie: str) -> bool:
        session = self._session
        return session is not None and compare_digest(cookie.encode(), session.encode())
