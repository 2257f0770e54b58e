"""URIs of documents that are parts of a file: lines, messages, attachments, conversations."""

import re

_NOT_IN_URI = re.compile("[\x00-\x20%#?/\x7f]")


def part_uri(uri: str, part: str) -> str:
    """Returns the URI of a part of the document `uri`: `FILE#<part>`, or `FILE#<document>/<part>` if that document is
    itself a part."""
    return f"{uri}{'/' if '#' in uri else '#'}{part}"


def key_in_uri(key: str) -> str:
    """Returns the key for use in a URI fragment: reserved characters percent-encoded, at most 200 characters."""
    return _NOT_IN_URI.sub(lambda sign: f"%{ord(sign[0]):02X}", key)[:200]
