"""URIs of documents: the characters that no URI contains, and the URIs of parts of a file, such as messages and attachments."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
NOT_IN_URI = "\x00-\x20\x7f\ud800-\udfff"
"""Characters that are percent-encoded in every URI, as ranges of a regular expression: control characters, the space, and
halves of surrogate pairs, which UTF-8 cannot encode."""
_RESERVED = re.compile(f"[{NOT_IN_URI}%#?/]")


def part_uri(uri: str, part: str) -> str:
    """Returns the URI of a part of the document `uri`: `FILE#<part>`, or `FILE#<document>/<part>` if the document is
    itself a part of a file."""
    return f"{uri}{'/' if '#' in uri else '#'}{part}"


def key_in_uri(key: str) -> str:
    """Percent-encodes the reserved characters of a key, for use in a URI fragment. Returns at most 200 characters."""
    return _RESERVED.sub(percent_encoded, key)[:200]


def percent_encoded(match: re.Match[str]) -> str:
    """Returns the match with each byte of its UTF-8 percent-encoded. Half of a surrogate pair becomes "?"."""
    return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "replace"))


def with_uris(uri: str, parts: Iterable[T], name: Callable[[T], str]) -> Iterator[tuple[str, T]]:
    """Yields each part of the document `uri` with its URI.

    The URI ends in the part's name, or in its number (from 1) if it has no name. If an earlier part has the same URI, the
    number is appended, or the next number that gives another URI.
    """
    used: set[str] = set()
    for number, part in enumerate(parts, 1):
        own = key = key_in_uri(name(part)) or str(number)
        suffix = number
        while key in used:
            key = f"{own}-{suffix}"
            suffix += 1
        used.add(key)
        yield part_uri(uri, key), part
