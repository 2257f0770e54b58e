"""iCalendar (RFC 5545) and vCard (RFC 6350, vCard 2.1): a heading for each event, task or person, a line for each
property."""

import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass

from consumers.omissions import OmissionKind
from consumers.parsing.decoding import clean_text, decode
from consumers.parsing.formats.text import text_parser
from consumers.parsing.limits import NotADocument
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText

_BOUNDARY = re.compile(r"(?:BEGIN|END):", re.IGNORECASE)
_QUOTED_PRINTABLE = re.compile(r"QUOTED-PRINTABLE", re.IGNORECASE)
_LINE = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;(?:\"[^\"]*\"|[^\":;])*)*):(.*)", re.DOTALL)
_PARAMETER = re.compile(r";([\w-]+)(?:=(\"[^\"]*\"|[^\":;]*))?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SEPARATOR = re.compile(r"(?<!\\)[;,]+")
_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?\d\d)?(Z?))?")
_NAMES = ("SUMMARY", "FN")
"""Properties that become the heading of their component, in order of preference."""
_LABELS = {
    "DTSTART": "Start", "DTEND": "End", "N": "Name", "TEL": "Telephone", "ADR": "Address", "BDAY": "Birthday",
    "ORG": "Organisation", "RRULE": "Repeats",
}  # fmt: skip
_KINDS_OF_ALL = frozenset(("", "pref", "voice", "internet", "x-internet", "base64", "quoted-printable", "jpeg"))
"""Types that are not shown, because nearly all telephone numbers have them or they name encodings. Other types distinguish work
from home."""
_PEOPLE = frozenset(("ATTENDEE", "ORGANIZER"))
_PROGRAM = frozenset(
    """
    VERSION PRODID UID DTSTAMP SEQUENCE REV CALSCALE METHOD TZID TZOFFSETFROM TZOFFSETTO TZNAME TRIGGER ACTION CLASS TRANSP
    LAST-MODIFIED CREATED PRIORITY GEO TZ CLIENTPIDMAP RECURRENCE-ID
""".split()
)
"""Properties that only programs use, in addition to properties whose names begin with X-."""
_PROGRAM_COMPONENTS = frozenset(("VTIMEZONE", "VALARM"))
"""Components that only programs use. The text of an alarm is "This is an event reminder" or a copy of the event's
text."""


@dataclass(frozen=True, slots=True)
class _Property:
    name: str
    parameters: dict[str, str]
    value: str
    line: int


@text_parser
def parse_calendar(text: str, outline: Outline) -> ParsedText:
    properties: list[_Property] = []
    components: list[str] = []
    title = ""
    for prop in _properties(text):
        if prop.name in ("BEGIN", "END"):
            _fill(properties, components, outline)
            properties = []
            if prop.name == "BEGIN":
                components.append(prop.value.strip().upper())
            elif components:
                components.pop()
        elif prop.name == "X-WR-CALNAME":
            title = " ".join(_plain(prop).split())
        else:
            properties.append(prop)
    _fill(properties, components, outline)
    return outline.document(title)


def _properties(text: str) -> Iterator[_Property]:
    """Yields the properties of the content lines. An invalid line continues the value of the line before it."""
    number, pending = 1, ""
    for at, line in _content_lines(text):
        if pending and line.strip() and not _LINE.match(line) and not _BOUNDARY.match(pending):
            pending += f"\n{line}"
        else:
            yield from _property(number, pending)
            number, pending = at, line
    yield from _property(number, pending)


def _content_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yields (number of the first line, text) of each content line. Joins folded lines (3.1) and lines that quoted-printable
    continues."""
    number, pending, quoted = 1, "", False
    for at, line in enumerate(text.split("\n"), 1):
        if quoted and pending.endswith("="):
            pending += f"\n{line}"
        elif pending and line[:1] in (" ", "\t"):
            pending += line[1:]
        else:
            yield number, pending
            number, pending = at, line
            quoted = _QUOTED_PRINTABLE.search(line.partition(":")[0]) is not None
    yield number, pending


def _property(number: int, line: str) -> Iterator[_Property]:
    if found := _LINE.match(line):
        name, stated, value = found.groups()
        parameters: dict[str, str] = {}
        for key, given in _PARAMETER.findall(stated):
            # vCard 2.1 states a type without the name TYPE: "TEL;WORK:". A property may have several types.
            key, given = (key.upper(), given.strip('"')) if given else ("TYPE", key)
            parameters[key] = f"{parameters[key]},{given}" if key == "TYPE" and key in parameters else given
        yield _Property(name.upper(), parameters, value, number)
    elif line.strip():
        yield _Property("", {}, line, number)


def _fill(properties: list[_Property], components: list[str], outline: Outline) -> None:
    """Adds the properties of the innermost open component to the outline."""
    in_program_component = not _PROGRAM_COMPONENTS.isdisjoint(components)
    names = () if in_program_component else _NAMES
    name = next((prop for preferred in names for prop in properties if prop.name == preferred), None)
    if name is not None:
        outline.heading(max(len(components), 1), _plain(name), line=name.line)
    for prop in properties:
        if prop is name:
            continue
        date = _DATE.fullmatch(prop.value)
        # An X- property that is a date without a time is a contact's anniversary.
        is_extension = prop.name.startswith("X-") and (date is None or date[4] is not None)
        for_program = is_extension or in_program_component or prop.name in _PROGRAM
        if _is_data(prop):
            outline.omissions.add(OmissionKind.EMBEDDED, f"{prop.name.lower()}, {len(prop.value):,} characters")
        elif date and for_program:
            continue
        elif (is_extension and prop.value.strip()) or (for_program and any(map(str.isalpha, prop.value))):
            outline.omissions.add(OmissionKind.METADATA, _plain(prop))
        elif not for_program and (text := _plain(prop).strip()):
            label = _LABELS.get(prop.name, prop.name.capitalize())
            stated = prop.parameters.get("TYPE", "").lower().split(",")
            if kinds := [kind for kind in dict.fromkeys(stated) if kind not in _KINDS_OF_ALL]:
                label = f"{label} ({', '.join(kinds)})"
            if date and "TZID" in prop.parameters:
                text = f"{text} {clean_text(prop.parameters['TZID'])}"
            outline.text(f"{label}: {text}" if label else text, "\n", line=prop.line)
        for key in ("ALTREP", "LABEL", "X-ABLABEL"):
            if key in prop.parameters:
                outline.omissions.add(OmissionKind.METADATA, clean_text(prop.parameters[key]))


def _is_data(prop: _Property) -> bool:
    encoding = prop.parameters.get("ENCODING", "").upper()
    return (
        encoding in ("B", "BASE64")
        or "BASE64" in prop.parameters.get("TYPE", "").upper()
        or prop.parameters.get("VALUE", "").upper() == "BINARY"
        or prop.value[:5].lower() == "data:"
    )


def _plain(prop: _Property) -> str:
    value = prop.value
    encoded = prop.parameters.get(
        "ENCODING", ""
    ).upper() == "QUOTED-PRINTABLE" or "QUOTED-PRINTABLE" in prop.parameters.get("TYPE", "")
    if encoded:
        printed = quopri.decodestring(value.encode("utf-8", "replace"))
        try:
            value = decode(printed, prop.parameters.get("CHARSET", ""))
        except NotADocument:
            value = printed.decode("utf-8", "replace")
    if prop.name in ("N", "ADR", "ORG", "CATEGORIES", "NICKNAME"):
        value = ", ".join(part.strip() for part in _SEPARATOR.split(value) if part.strip())
    value = _ESCAPED.sub(lambda sign: "\n" if sign[1] in "nN" else sign[1], value)
    if date := _DATE.fullmatch(value):
        year, month, day, hour, minute, zone = date.groups()
        return f"{year}-{month}-{day}" + (f" {hour}:{minute}{' UTC' if zone else ''}" if hour else "")
    if prop.name in _PEOPLE:
        address = value[len("mailto:") :] if value.lower().startswith("mailto:") else value
        return clean_text(f"{prop.parameters['CN']} <{address}>" if prop.parameters.get("CN") else address)
    return clean_text(value)
