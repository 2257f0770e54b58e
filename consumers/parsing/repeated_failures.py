"""Combines failed documents of one file that have the same cause into one failed document with a count."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from consumers.parsing.regular_file import ParseSummary
from consumers.types import ParsedDocument

LISTED = 10
"""Maximum number of failed documents with the same cause that are listed individually."""

CAUSES = 20
"""Maximum number of distinct causes in one file. All further causes together count as one cause."""

EXAMPLES = 3
"""Number of documents that a summary names for each cause."""

_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass(slots=True)
class _Cause:
    reason: str
    example: ParsedDocument
    count: int = 0
    first: dict[str, ParsedDocument] = field(default_factory=dict)
    """The first failed documents with this cause, by URI; at most `LISTED`."""

    @property
    def is_summarised(self) -> bool:
        """Whether more documents failed than `first` contains."""
        return self.count > len(self.first)

    def add(self, failed: ParsedDocument) -> None:
        if failed.uri in self.first:
            self.first[failed.uri] = failed
            return
        self.count += 1
        if len(self.first) < LISTED:
            self.first[failed.uri] = failed

    def remove(self, uri: str) -> None:
        """Removes a document that a later document with the same URI replaces."""
        if self.first.pop(uri, None) is not None:
            self.count -= 1


def with_summarised_failures(
    found: Iterable[ParsedDocument | ParseSummary], uri: str, title: str
) -> Iterator[ParsedDocument | ParseSummary]:
    """Yields the documents of the file `uri`. Failed documents come last; if more than `LISTED` have the same cause, they are
    combined.

    The combined document has the file's own URI. If the file has a document with that URI, such as an e-mail whose attachments
    failed, the combined document has the first failed document's URI. If the file has an error under its own URI, the two
    messages are joined. Errors that differ only in numbers, such as lines and columns, have the same cause.
    """
    causes: dict[tuple[bool, str], _Cause] = {}
    end: ParseSummary | None = None
    whole: ParsedDocument | None = None
    has_own_document = False
    for item in found:
        if isinstance(item, ParseSummary):
            end = item
        elif item.uri == uri and item.error is not None:
            whole = item
        elif item.error is None:
            for cause in causes.values():
                cause.remove(item.uri)
            has_own_document |= item.uri == uri
            yield item
        else:
            key = (item.skipped, _NUMBER.sub("#", item.error))
            if key not in causes and len(causes) >= CAUSES:
                key = (item.skipped, "")
            reason = item.error if key[1] else f"other reasons, such as: {item.error}"
            causes.setdefault(key, _Cause(reason, item)).add(item)
    many = [cause for cause in causes.values() if cause.is_summarised]
    for cause in causes.values():
        if not cause.is_summarised:
            yield from cause.first.values()
    if many:
        summary = _summary(many, title, "" if has_own_document else uri)
        whole = summary if whole is None else _joined(summary, whole)
    if whole is not None:
        yield whole
    if end is not None:
        yield end


def _summary(causes: list[_Cause], title: str, uri: str) -> ParsedDocument:
    """Returns one document for all failures with these causes. The document counts as failed if one of the documents
    failed, otherwise as skipped.

    If `uri` is "", the document gets the URI of the first failed document.
    """
    causes = sorted(causes, key=lambda cause: (cause.example.skipped, -cause.count))
    first = causes[0].example
    return ParsedDocument(
        uri or first.uri,
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
    examples = list(cause.first.values())[:EXAMPLES] or [cause.example]
    names = ", ".join(each.uri.partition("#")[2] for each in examples)
    return f"{cause.count:,} of its documents are not read: {cause.reason} ({names}, …)"
