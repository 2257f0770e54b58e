"""How people name documents: what they type becomes a URI, and a URI is shown as they would write it.

`file:///drive/%E6%97%A5%E8%A8%98/July%20%282%29.md` is shown as `file:///drive/日記/July (2).md`. Either may be typed, or the
path. What is shown always names the same document when it is typed again.
"""

import os
import re
from pathlib import Path
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ADDED_SAFE = "/:@!$&'()*+,;=~-._"
"""What hippod leaves as it is in the id of an added document."""
_AMBIGUOUS = "%#?"
"""What has a meaning in a URI: shown as it is encoded."""
_SPACES_TO_KEEP = re.compile(r"^ | (?= )| $")
"""Spaces that printing, or typing, would lose."""


def as_uri(name: str) -> str:
    """The URI for a document's name as people type it: a path, or a URI with or without percent-encoding.

    A name without a scheme is a path where it begins like one (/, ./, ../, ~/), or where it or the folder that it names is
    there; anything else (a passage's id, a phrase) is text and stays as it is.
    """
    if name in (".", "..", "~") or name.startswith(("/", "./", "../", "~/")) or _is_path(name):
        return Path(_as_on_disk(os.path.abspath(Path(name).expanduser()))).as_uri()  # noqa: PTH100 - links stay as they are
    scheme, found, rest = name.partition(":")
    if found and scheme == "file":
        path, hash_, fragment = rest.partition("#")
        return f"file:{quote_from_bytes(_bytes(path))}{hash_}{fragment}"
    if found and scheme == "added":
        return "added:" + quote(_bytes(rest), safe=_ADDED_SAFE)
    return as_text(name)


def as_text(name: str) -> str:
    """What was typed, as the daemon can be asked for it: bytes that are no UTF-8 become replacement characters."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def readable_uri(uri: str) -> str:
    """A document's URI without percent-encoding where that says the same."""
    if not uri.startswith(("file:", "added:")):
        return uri
    encoded, hash_, fragment = uri.partition("#")
    try:
        decoded = unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:  # a name that is not UTF-8
        return uri
    written = "".join(char if char.isprintable() and char not in _AMBIGUOUS else quote(char) for char in decoded)
    return f"{_SPACES_TO_KEEP.sub('%20', written)}{hash_}{fragment}"


def _is_path(name: str) -> bool:
    if not name or _SCHEME.match(name):
        return False
    try:
        return os.path.lexists(_as_on_disk(name)) or ("/" in name and Path(name).parent.is_dir())
    except (OSError, ValueError):  # too long for a name, or with a zero byte: a phrase, or a triple
        return False


def _as_on_disk(path: str) -> str:
    """`path`, or what differs from it in nothing that is seen and is there: macOS, and archives made there, write the marks of
    letters apart, and keyboards do not."""
    if path.isascii():
        return path
    from unicodedata import normalize

    spellings = (path, normalize("NFC", path), normalize("NFD", path))
    return next((each for each in spellings if os.path.lexists(each)), path)


def _bytes(text: str) -> bytes:
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape"))
