"""Reads a large JSON file value by value. It needs little memory and never blocks the interpreter for long.

It accepts the same texts as `json.loads` and raises the same errors (a test compares them), including NaN (written by
`json.dump`), UTF-16 and a byte order mark. ijson was rejected: it refuses these three and lone surrogates, and its errors quote
the content without a position.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

READ_BYTES = 1 << 16
"""Number of bytes read in one call; more for a longer value."""

MAX_VALUE_CHARS = 16 << 20
"""Maximum number of characters of one value."""

LOOKAHEAD_CHARS = 16
"""An error this near to the end of the text read so far may disappear with more text, because a word, a number or an escape may
be incomplete."""

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class ValueTooLong(ValueError):
    """A value is too long; the message gives its position."""


class JsonStream:
    """A position in the file; every call advances it. All methods raise ValueError with the position for invalid JSON.

    A value may have `max_value_chars` characters, and nest as deep as Python recurses (RecursionError).
    """

    def __init__(self, file: BinaryIO, read_bytes: int = READ_BYTES, max_value_chars: int = MAX_VALUE_CHARS) -> None:
        self._file = file
        self._piece = read_bytes
        self._longest = max_value_chars
        first = file.read(max(read_bytes, 4))
        self._decode = codecs.getincrementaldecoder(json.detect_encoding(first))("surrogatepass").decode
        self._bytes = 0
        self._ended = False
        self._text = ""
        self._at = 0
        self._before = self._lines = self._line = 0
        """Three numbers: characters before `_text`, line ends before it, and the position where its first line begins."""
        self._take(first)

    def peek(self) -> str:
        """Returns the next character that is not white space; "" at the end of the file."""
        while True:
            match = _SPACE.match(self._text, self._at)
            assert match is not None
            self._at = match.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._read_on()

    def value(self) -> Any:
        """Returns the next value."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut_off = error.msg.startswith("Unterminated string") or error.pos > len(self._text) - LOOKAHEAD_CHARS
                if self._ended or not cut_off:
                    raise self._wrong(error.msg, error.pos) from None
            else:
                if self._ended or end <= len(self._text) - LOOKAHEAD_CHARS:
                    self._at = end
                    return value
            if len(self._text) - self._at > self._longest:
                raise ValueTooLong(f"a value is longer than {self._longest:,} characters: {self._place(self._at)}")
            self._read_on()

    def members(self) -> Iterator[str]:
        """Yields the names in the object that begins here; the caller must read each value before the next name."""
        self._begin("{")
        if self.peek() != "}":
            while True:
                if self.peek() != '"':
                    raise self._wrong("Expecting property name enclosed in double quotes", self._at)
                name = self.value()
                if self.peek() != ":":
                    raise self._wrong("Expecting ':' delimiter", self._at)
                self._at += 1
                yield name
                if self._last("}"):
                    break
        self._at += 1

    def elements(self) -> Iterator[Any]:
        """Yields the values in the array that begins here."""
        self._begin("[")
        if self.peek() != "]":
            while True:
                yield self.value()
                if self._last("]"):
                    break
        self._at += 1

    def skip(self) -> None:
        """Skips the next value, element by element if it is an array or object."""
        match self.peek():
            case "[":
                for _ in self.elements():
                    pass
            case "{":
                for _ in self.members():
                    self.value()
            case _:
                self.value()

    def end(self) -> None:
        """Raises ValueError if more than white space is left."""
        if self.peek():
            raise self._wrong("Extra data", self._at)

    def _begin(self, opening: str) -> None:
        if self.peek() != opening:
            raise self._wrong(f"Expecting {opening!r}", self._at)
        self._at += 1

    def _last(self, closing: str) -> bool:
        """Whether the array or object ends here; otherwise skips the comma."""
        found = self.peek()
        if found == closing:
            return True
        if found != ",":
            raise self._wrong("Expecting ',' delimiter", self._at)
        self._at += 1
        return False

    def _read_on(self) -> None:
        # Reading doubles the text, because an incomplete value is parsed from its beginning after each reading.
        self._take(self._file.read(max(self._piece, len(self._text) - self._at)))

    def _take(self, data: bytes) -> None:
        self._ended = not data
        self._bytes += len(data)
        try:
            more = self._decode(data, self._ended)
        except UnicodeDecodeError as error:
            before = self._bytes - len(error.object)
            first, last = before + error.start, before + error.end - 1
            where = f"byte 0x{error.object[error.start]:02x} in position {first}"
            if last > first:
                where = f"bytes in position {first}-{last}"
            raise ValueError(f"'{error.encoding}' codec can't decode {where}: {error.reason}") from None
        done = self._text[: self._at]
        if newlines := done.count("\n"):
            self._lines += newlines
            self._line = self._before + done.rindex("\n") + 1
        self._before += len(done)
        self._text = self._text[self._at :] + more
        self._at = 0

    def _wrong(self, message: str, at: int) -> ValueError:
        return ValueError(f"{message}: {self._place(at)}")

    def _place(self, at: int) -> str:
        place = self._before + at
        line = self._lines + self._text.count("\n", 0, at) + 1
        newline = self._text.rfind("\n", 0, at)
        begins = self._before + newline + 1 if newline >= 0 else self._line
        return f"line {line} column {place - begins + 1} (char {place})"
