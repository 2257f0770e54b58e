"""Removes base64 data, such as pictures and files, from a text, or decodes it."""

import base64
import binascii
import re
from collections.abc import Callable
from functools import partial
from urllib.parse import unquote_to_bytes

from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.limits import PictureError

_DATA = re.compile(r"data:([\w.+-]{1,40}/[\w.+-]{1,80})?(?:;[\w=.-]{1,80}){0,4};base64,[A-Za-z0-9+/=_%-]*")
_LINES = re.compile(
    r"(?:^[ \t]*[A-Za-z0-9+/]{60,200}={0,2}[ \t]*(?:\n|\Z)){2,}(?:^[ \t]*[A-Za-z0-9+/]{1,200}={0,2}[ \t]*$)?",
    re.MULTILINE,
)
_MIXED = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9+/]"))


_PICTURE = re.compile(r"\s*data:image/[\w.+-]{1,80}(?:;[\w=.-]{1,80}){0,4}?(;base64)?,", re.IGNORECASE)


def embedded_picture(address: str) -> Callable[[], bytes] | None:
    """Returns a function that decodes the picture in a `data:` address (RFC 2397), or None for other addresses."""
    begin = _PICTURE.match(address)
    if begin is None:
        return None
    return partial(decoded_base64 if begin[1] else unquote_to_bytes, address[begin.end() :])


def decoded_base64(text: str) -> bytes:
    """Returns the bytes of a picture. Raises PictureError if the text is not base64."""
    try:
        return base64.b64decode(unquote_to_bytes(text))
    except binascii.Error as error:
        raise PictureError(f"it is damaged ({error})") from error


def is_base64(text: str) -> bool:
    """Whether a text consists of base64 lines only.

    Base64 mixes upper case, lower case and digits; lists of hashes have no upper case, gene sequences no lower case.
    """
    found = _LINES.match(text.strip() + "\n")
    return found is not None and found.end() >= len(text.strip()) and all(each.search(text) for each in _MIXED)


def without_embedded_data(text: str, omissions: Omissions) -> str:
    """Replaces each embedded picture by `data:,` and each line of base64 by an empty line; reports both as
    omissions."""

    def report(match: re.Match[str]) -> str:
        omissions.add(OmissionKind.PICTURE, match[1] or "embedded data")
        return "data:,"

    def report_lines(match: re.Match[str]) -> str:
        if not all(each.search(match[0]) for each in _MIXED):
            return match[0]
        lines = match[0].count("\n")
        omissions.add(OmissionKind.EMBEDDED, f"{max(lines, 1):,} lines of base64")
        return "\n" * lines

    return _LINES.sub(report_lines, _DATA.sub(report, text) if ";base64," in text else text)
