"""A token in a file, which is read again when the file changes."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

import structlog

from daemon.config_types.path_validators import read_token
from daemon.observe.logs import mask

log = structlog.get_logger(__name__)
TOKEN_READ_TIMEOUT_S = 5.0
"""Timeout for reading the token file. A read takes less than a millisecond if the drive responds."""


@dataclass(frozen=True, slots=True)
class _TokenState:
    """The result of the last check of the token file. `stamp` changes with the file."""

    stamp: tuple[Path, int, int, int, int] | None = None
    digest: bytes | None = None
    complaint: str = ""


class TokenFile:
    """The token in a file. `refresh` checks the file, and reads it again if it has changed.

    If the file's content would be refused at a start, no token is accepted. Each file is read in its own thread, so a
    hanging drive delays only the requests that send a token.
    """

    def __init__(self, path: Path, key: str = "[api] token_file") -> None:
        """`key` is the setting that names the file."""
        self.path = path
        self._key = key
        self._state = _TokenState()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="token")

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def has(self, digest: bytes) -> bool:
        """Returns whether the file contained the token with this SHA-256 digest when it was last checked."""
        known = self._state.digest
        # All digests have one length, and the comparison takes constant time: timing reveals nothing about the token.
        return known is not None and compare_digest(known, digest)

    async def refresh(self) -> bool:
        """Checks the file; returns whether the previous token is no longer valid."""
        before = self._state
        try:
            async with asyncio.timeout(TOKEN_READ_TIMEOUT_S):
                found = await asyncio.get_running_loop().run_in_executor(
                    self._thread, _read_if_changed, self.path, before, self._key
                )
        except TimeoutError:
            found = _TokenState(
                complaint=f"{self.path} could not be read in {TOKEN_READ_TIMEOUT_S:g} s; is its drive there?"
            )
        if found.complaint and found.complaint != self._state.complaint:  # log it once, not at every request
            log.error("token_unreadable", error=found.complaint, hint="hippod admits nobody with this token for now")
        self._state = found
        return before.digest is not None and found.digest != before.digest


def _read_if_changed(path: Path, before: _TokenState, key: str) -> _TokenState:
    try:
        status = path.stat()
        stamp = (path, status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)
        if stamp == before.stamp:
            return before
        token = read_token(path)
    except OSError as error:
        return _TokenState(complaint=f"{path}: {error.strerror}")
    except ValueError as error:
        return _TokenState(complaint=f"{key}: allowed is {error}")
    mask(token)  # before any log line could contain the token
    return _TokenState(stamp, sha256(token.encode()).digest())
