"""Many documents of one file that fail for one cause: one problem with a count."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from consumers.parsing.regular_file import ParseSummary
from consumers.types import ParsedDocument

LISTED = 10
"""Documents of a file that are listed each by itself, if they fail for one cause."""

CAUSES = 20
"""Causes that are told apart in one file. Further failures count as one more cause."""

EXAMPLES = 3
"""Documents that a summary names for each cause."""

_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass(slots=True)
class _Cause:
    reason: str
    count: int = 0
    first: list[ParsedDocument] = field(default_factory=list)
    """The first of them, at most `LISTED`."""


def with_summarised_failures(
    found: Iterable[ParsedDocument | ParseSummary], uri: str, title: str
) -> Iterator[ParsedDocument | ParseSummary]:
    """The documents of the file `uri`. Documents that fail come last; if more than `LISTED` fail for one cause, one document
    with the file's own URI takes their place. It also says what such a document says already.

    Two errors have one cause if they differ in numbers only: those of lines and columns, for example.
    """
    causes: dict[tuple[bool, str], _Cause] = {}
    end: ParseSummary | None = None
    whole: ParsedDocument | None = None
    for each in found:
        if isinstance(each, ParseSummary):
            end = each
        elif each.uri == uri and each.error is not None:
            whole = each
        elif each.error is None:
            # Of two documents with one URI the later counts.
            for cause in causes.values():
                if any(other.uri == each.uri for other in cause.first):
                    cause.first = [other for other in cause.first if other.uri != each.uri]
                    cause.count -= 1
            yield each
        else:
            key = (each.skipped, _NUMBER.sub("#", each.error))
            if key not in causes and len(causes) >= CAUSES:
                key = (each.skipped, "")
            cause = causes.setdefault(key, _Cause(each.error if key[1] else f"other reasons, such as: {each.error}"))
            cause.count += 1
            if len(cause.first) < LISTED:
                cause.first.append(each)
    many = [cause for cause in causes.values() if cause.count > LISTED]
    for cause in causes.values():
        if cause.count <= LISTED:
            yield from cause.first
    if many:
        summary = _summary(many, uri, title)
        whole = summary if whole is None else _joined(summary, whole)
    if whole is not None:
        yield whole
    if end is not None:
        yield end


def _summary(causes: list[_Cause], uri: str, title: str) -> ParsedDocument:
    """One document for all failures of these causes; it has failed if one of them has."""
    causes = sorted(causes, key=lambda cause: (cause.first[0].skipped, -cause.count))
    first = causes[0].first[0]
    return ParsedDocument(
        uri,
        title,
        modified_at=first.modified_at,
        error="; ".join(map(_sentence, causes)),
        skipped=first.skipped,
        code=first.code,
    )


def _joined(summary: ParsedDocument, whole: ParsedDocument) -> ParsedDocument:
    first = summary if whole.skipped else whole
    return replace(first, error=f"{summary.error}; {whole.error}", left_out=whole.left_out)


def _sentence(cause: _Cause) -> str:
    names = ", ".join(each.uri.partition("#")[2] for each in cause.first[:EXAMPLES])
    return f"{cause.count:,} of its documents are not read: {cause.reason} ({names}, …)"
