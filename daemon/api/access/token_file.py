"""The token in a file: read again when the file changes."""

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
"""How long reading the token file may take: less than a millisecond where its drive answers."""


@dataclass(frozen=True, slots=True)
class _TokenState:
    """What the last look at the token file found. `stamp` changes with the file."""

    stamp: tuple[Path, int, int, int, int] | None = None
    digest: bytes | None = None
    complaint: str = ""


class TokenFile:
    """The token in a file. `refresh` looks at the file, and reads it again when it has changed.

    A file that a start would not accept lets nobody in. A thread of its own reads: a drive that hangs delays those who come
    with a token, and nobody else.
    """

    def __init__(self, path: Path, key: str = "[api] token_file") -> None:
        """`key`: the setting that names the file."""
        self.path = path
        self._key = key
        self._state = _TokenState()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="token")

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def has(self, digest: bytes) -> bool:
        """Whether the file held the token of this digest (SHA-256) when it was last looked at."""
        known = self._state.digest
        # Digests have one length, and comparing them takes the same time however much of the token is right.
        return known is not None and compare_digest(known, digest)

    async def refresh(self) -> bool:
        """Returns whether the token of before lets nobody in any more."""
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
        if found.complaint and found.complaint != self._state.complaint:  # once, not at every request
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
    mask(token)  # before a request with it can be logged
    return _TokenState(stamp, sha256(token.encode()).digest())
