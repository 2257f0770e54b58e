"""Removes a site's or format's additions from a title: "9.2.1. Key-based login", "chmod(2) Manual chmod(2)"."""

import re

_NUMBERED = re.compile(
    r"(?:(?:chapter|appendix|part|section)\s+[\dIVXA-Z]+[.:]?\s+|\d+(?:\.\d+)*\.\s+|\d+(?:\.\d+)+\s+)(?=\S)", re.I
)
_MANUAL = re.compile(r"(\S[^()]{0,80})\(([1-9][a-z]{0,4})\)(?:\s.*)?")
LISTS = frozenset(
    {
        "table of contents",
        "contents",
        "navigation",
        "site navigation",
        "index",
        "on this page",
        "breadcrumb",
        "list of tables",
    }
    | {"list of figures", "see also", "related links", "previous topic", "next topic", "this page", "quick search"}
)
"""Headings of lists whose items are described elsewhere."""
_INDEX = re.compile(
    r"(?:concept|general|alphabetical|subject|author|function|variable|command|option|keyword)s?(?: and \w+)* index"
)
_MANUAL_WORDS = frozenset({"manual", "documentation", "docs", "version", "reference", "handbook"})
_MARKS = "¶§#"
_DASHES = (" — ", " -- ", " | ", " :: ", " · ")
_README = re.compile(r"README:? +| +README\b:?")


def plain_title(title: str) -> tuple[str, str]:
    """Returns the name in one part of a title, and the kind that the title states ("" if none)."""
    title = _README.sub("", title.strip().strip(_MARKS).strip())
    name, kind = title, ""
    for dash in _DASHES:
        first, found, rest = name.partition(dash)
        if found and first.strip() and len(first.split()) <= 8:
            name = first.strip()
            parts = [part.strip() for part in rest.split(dash) if part.strip()]
            # The text after the last dash names the site; text between dashes is the kind.
            kind = kind or (parts[0] if dash == " — " and (len(parts) > 1 or not _is_site(parts[0])) else "")
    if numbered := _NUMBERED.match(name):
        name = name[numbered.end() :].strip() or name
    manual = _MANUAL.fullmatch(name)
    if manual and (name.rstrip().endswith(f"{manual[1]}({manual[2]})") or name == f"{manual[1]}({manual[2]})"):
        name = manual[1].lower() if manual[1].isupper() else manual[1]
    return name, kind


def is_contents(title: str) -> bool:
    """Whether a passage's last heading announces a list of items that other passages describe. If the last heading is a letter
    ("Index › A"), the heading before it counts. The items' phrases would connect unrelated passages."""
    parts = title.split(" › ")
    heading = parts[-2] if len(parts) > 1 and len(parts[-1]) == 1 else parts[-1]
    name = plain_title(heading)[0].lower().strip("- ")
    return name in LISTS or bool(_INDEX.fullmatch(name))


def names_manual(qualifier: str) -> bool:
    """Whether the brackets in a page's title name the manual or version: "Mailbox (GNU Manual)"."""
    return not _MANUAL_WORDS.isdisjoint(qualifier.lower().replace("(", " ").split())


def _is_site(part: str) -> bool:
    return any(
        word in part.lower().split() for word in ("documentation", "manual", "docs", "wiki", "wikipedia", "reference")
    )
