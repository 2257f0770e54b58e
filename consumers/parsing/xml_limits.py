"""Options of lxml's parsers, which read no other file, and the report if a parser stops at a limit of libxml2."""

from collections.abc import Iterable
from typing import Any

from lxml import etree

from consumers.omissions import OmissionKind, Omissions

XML_OPTIONS: dict[str, Any] = {"resolve_entities": False, "no_network": True, "huge_tree": True}
"""With `huge_tree`, libxml2 reads texts of more than 10 MB and elements nested more than 256 deep. Without it, a parser that
recovers from errors silently drops the rest of the file. The size of a file is limited before it is parsed. Never resolve
entities with `huge_tree`, which also lifts the limit on their expansion."""


def report_limit(log: Iterable[Any], omissions: Omissions) -> None:
    """Reports the rest of a file if its parser stopped at a limit. `log` is the parser's error log."""
    for error in log:
        if error.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
            omissions.add(
                OmissionKind.TOO_LARGE, f"the text after line {error.line:,}: {error.message.partition(', ')[0]}"
            )
