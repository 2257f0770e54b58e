"""Opens a followed file, refuses everything except regular files, and reads it once."""

import os
import stat
from dataclasses import dataclass
from hashlib import blake2b

from consumers.failure_codes import FailureCode
from consumers.openat import FileAccess, has_unchecked_links, open_file, refusal_of_error, refusal_of_special_file
from consumers.parsing.limits import NotADocument, NotIndexed, Unreadable
from consumers.types import FileRefusal, content_digest

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ParseSummary:
    """Summary of a parsed file: digest of the parsed bytes (`consumers.types.content_digest`), and the file's state when
    opened.

    `changed`: size or mtime changed while the file was read. The content may then mix two versions, and the file must be parsed
    again. `awaits_ocr`: the file has pictures that a later run reads (`Limits.ocr`).
    """

    digest: str
    size: int
    mtime_ns: int
    inode: int
    changed: bool = False
    awaits_ocr: bool = False


class OpenFile:
    """A regular file that is read once from start to end. A context manager; every error says what the user can do."""

    def __init__(self, path: bytes, access: FileAccess) -> None:
        try:
            self._fd = open_file(path, root=access.root, follow=access.follow_symlinks)
        except OSError as error:
            raise _refused(refusal_of_error(error)) from error
        self.status = os.fstat(self._fd)
        if not stat.S_ISREG(self.status.st_mode):
            os.close(self._fd)
            raise _refused(refusal_of_special_file(self.status.st_mode))
        if not access.follow_symlinks and has_unchecked_links(self.status, access.checked_inode):
            os.close(self._fd)
            raise Unreadable(
                "it became a hard link to another file while it was checked; it is checked again", FailureCode.LINK
            )
        self._digest = blake2b(digest_size=16)
        self._chunk = b""
        self._at = 0
        """Position in `_chunk` of the next line."""
        self.read_bytes = 0
        """Number of bytes read so far."""
        self._at_end = False
        self._max_bytes = access.max_bytes
        self.is_cut = access.max_bytes is not None and self.status.st_size > access.max_bytes
        """Whether only the beginning of the file is read."""
        self.ended_in_line = False
        """Whether the last line from `read_line` had no line end. In a cut file, that line is incomplete."""

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def read_all(self, limit: int) -> bytes:
        """Returns the content, at most `limit` bytes."""
        parts = []
        while self.read_bytes < limit and (chunk := self._read()):
            parts.append(chunk)
        if self.read_bytes > limit or self.status.st_size > limit:
            self.is_cut = True
        return b"".join(parts)[:limit]

    def read_line(self, limit: int) -> tuple[bytes, bool] | None:
        """Returns (next line without its end, whether it has at most `limit` bytes); None at the end of the file.

        A longer line is cut to its first `limit` bytes.
        """
        parts: list[bytes] = []
        length = 0
        while True:
            end = self._chunk.find(b"\n", self._at)
            piece = self._chunk[self._at : end if end >= 0 else None]
            if length <= limit:
                parts.append(piece[: limit + 1])
            length += len(piece)
            if end >= 0:
                self._at = end + 1
                break
            self._chunk, self._at = b"" if self._at_end else self._read(), 0
            if not self._chunk:
                if not length:
                    return None
                self.ended_in_line = True
                break
        line = b"".join(parts)
        return (line[:limit], length <= limit)

    def summary(self) -> ParseSummary:
        """Reads the remaining bytes and returns the summary. The digest covers the file up to `max_bytes`."""
        while self._read():
            pass
        before, after = self.status, os.fstat(self._fd)
        size = before.st_size
        digest = content_digest(self._digest.hexdigest(), size, self._max_bytes)
        if self._max_bytes is not None and size > self._max_bytes:
            # A file such as a log may grow beyond `max_bytes` without counting as changed. The next scan detects other
            # changes by the mtime.
            changed = after.st_size < size
        else:
            changed = (size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or self.read_bytes != size
        return ParseSummary(digest, size, before.st_mtime_ns, before.st_ino, changed)

    def _read(self) -> bytes:
        left = _CHUNK if self._max_bytes is None else min(_CHUNK, self._max_bytes - self.read_bytes)
        try:
            chunk = os.read(self._fd, left) if left > 0 else b""
        except OSError as error:
            raise _refused(refusal_of_error(error)) from error
        self._digest.update(chunk)
        self.read_bytes += len(chunk)
        self._at_end = not chunk
        return chunk


def _refused(refusal: FileRefusal) -> NotIndexed:
    return (Unreadable if refusal.may_recover else NotADocument)(refusal.reason, refusal.code)
