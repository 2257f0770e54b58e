"""URIs of documents that are parts of a file: lines, messages, attachments, conversations."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
_NOT_IN_URI = re.compile("[\x00-\x20%#?/\x7f]")


def part_uri(uri: str, part: str) -> str:
    """Returns the URI of a part of the document `uri`: `FILE#<part>`, or `FILE#<document>/<part>` if the document is
    itself a part of a file."""
    return f"{uri}{'/' if '#' in uri else '#'}{part}"


def key_in_uri(key: str) -> str:
    """Percent-encodes the reserved characters of a key, for use in a URI fragment. Returns at most 200 characters."""
    return _NOT_IN_URI.sub(lambda sign: f"%{ord(sign[0]):02X}", key)[:200]


def with_uris(uri: str, parts: Iterable[T], name: Callable[[T], str]) -> Iterator[tuple[str, T]]:
    """Yields each part of the document `uri` with its URI.

    The URI ends in the part's name, or in its number (from 1) if it has no name. If an earlier part has the same name, the
    number is appended.
    """
    used: set[str] = set()
    for number, part in enumerate(parts, 1):
        key = key_in_uri(name(part)) or str(number)
        key = f"{key}-{number}" if key in used else key
        used.add(key)
        yield part_uri(uri, key), part
