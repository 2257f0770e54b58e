"""Pictures inside a text, as base64: no line of a text that people read has a megabyte of it."""

import re

from consumers.omissions import OmissionKind, Omissions

_DATA = re.compile(r"data:([\w.+-]{1,40}/[\w.+-]{1,80})?(?:;[\w=.-]{1,80}){0,4};base64,[A-Za-z0-9+/=_%-]*")


def without_embedded_data(text: str, omissions: Omissions) -> str:
    """The text with an empty address in place of each embedded picture."""

    def report(match: re.Match[str]) -> str:
        omissions.add(OmissionKind.PICTURE, match[1] or "embedded data")
        return "data:,"

    return _DATA.sub(report, text) if ";base64," in text else text
