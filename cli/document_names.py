"""Converts typed names of documents to URIs, URIs to readable names, and typed values to JSON.

`file:///drive/%E6%97%A5%E8%A8%98/July%20%282%29.md` is shown as `file:///drive/日記/July (2).md`. Users may type either form,
or the path. Typed again, a readable name denotes the same document.
"""

import json
import os
import re
from pathlib import Path
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ADDED_SAFE = "/:@!$&'()*+,;=~-._"
"""Characters that hippod does not percent-encode in the id of an added document."""
_AMBIGUOUS = "%#?"
"""Characters with a special meaning in a URI, which are shown percent-encoded."""
_SPACES_TO_KEEP = re.compile(r"^ | (?= )| $")
"""Spaces that printing or typing would lose."""
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that represent no byte, from an escape such as "\\ud83d" in a file of questions."""


def as_uri(name: str) -> str:
    """Converts a typed document name (a path, or a URI with or without percent-encoding) to its URI.

    A name without a scheme is a path if it begins like one (/, ./, ../, ~/), or if it or its parent folder exists. Any other
    name (a passage's id, a phrase) is text and is returned unchanged.
    """
    if name in (".", "..", "~") or name.startswith(("/", "./", "../", "~/")) or _is_path(name):
        return Path(_as_on_disk(os.path.abspath(Path(name).expanduser()))).as_uri()  # noqa: PTH100 - resolve() would follow links
    scheme, found, rest = name.partition(":")
    if found and scheme == "file":
        path, hash_, fragment = rest.partition("#")
        return f"file:{quote_from_bytes(_bytes(path))}{hash_}{fragment}"
    if found and scheme == "added":
        return "added:" + quote(_bytes(rest), safe=_ADDED_SAFE)
    return as_text(name)


def as_text(name: str) -> str:
    """Returns typed text with replacement characters for bytes that are not UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def request_json(value: object) -> str:
    """Returns `value` as JSON. Surrogates, with which Python represents bytes of an argument that are not UTF-8, become
    replacement characters, because JSON parsers would reject the request."""
    return as_text(_HALF.sub("\ufffd", json.dumps(value, ensure_ascii=False)))


def readable_uri(uri: str) -> str:
    """Returns a document's URI without percent-encoding, except for ambiguous characters."""
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
    if not name or SCHEME.match(name):
        return False
    try:
        return os.path.lexists(_as_on_disk(name)) or ("/" in name and Path(name).parent.is_dir())
    except (OSError, ValueError):  # too long for a file's name or with a NUL, so a phrase or a triple
        return False


def _as_on_disk(path: str) -> str:
    """Returns `path` in the Unicode normalisation form in which it exists on disk, otherwise unchanged.

    macOS, and archives made there, store letters and marks separately (NFD); keyboards produce composed letters.
    """
    if path.isascii():
        return path
    from unicodedata import normalize

    spellings = (path, normalize("NFC", path), normalize("NFD", path))
    return next((each for each in spellings if os.path.lexists(each)), path)


def _bytes(text: str) -> bytes:
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape"))
