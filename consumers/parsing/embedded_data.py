"""Removes base64 data, such as pictures and files, from a text."""

import re

from consumers.omissions import OmissionKind, Omissions

_DATA = re.compile(r"data:([\w.+-]{1,40}/[\w.+-]{1,80})?(?:;[\w=.-]{1,80}){0,4};base64,[A-Za-z0-9+/=_%-]*")
_LINES = re.compile(
    r"(?:^[ \t]*[A-Za-z0-9+/]{60,200}={0,2}[ \t]*(?:\n|\Z)){2,}(?:^[ \t]*[A-Za-z0-9+/]{1,200}={0,2}[ \t]*$)?",
    re.MULTILINE,
)
_MIXED = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9+/]"))


def is_base64(text: str) -> bool:
    """Whether a text consists of base64 lines only.

    Base64 mixes upper case, lower case and digits; lists of hashes have no upper case, gene sequences no lower case.
    """
    found = _LINES.match(text.strip() + "\n")
    return found is not None and found.end() >= len(text.strip()) and all(each.search(text) for each in _MIXED)


def without_embedded_data(text: str, omissions: Omissions) -> str:
    """Replace each embedded picture by `data:,` and each line of base64 by an empty line; report both as omissions."""

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
