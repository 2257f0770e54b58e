"""`show` on a terminal: a document, passage, phrase or triple with its connections."""

from collections.abc import Iterable, Mapping
from typing import assert_never

from rich.text import Text

from cli.render.highlights import snippet
from cli.render.lines import DIM, HEADING, align, hanging, indent, state, text, triple
from cli.terminal_text import local_time, location_text, one_line, terminal_safe, uri
from daemon.contract.documents import (
    DocumentLink,
    PassageOccurrence,
    PassageSummary,
    ShowDocument,
    ShowPassage,
    ShowPhrase,
    ShowResponse,
    ShowTriple,
    TripleText,
    WeightedPhrase,
)


def card_lines(answer: ShowResponse, width: int) -> list[Text]:
    match answer:
        case ShowDocument():
            return _document(answer, width)
        case ShowPassage():
            return _passage(answer, width)
        case ShowPhrase():
            return _phrase(answer, width)
        case ShowTriple():
            head = text(("triple  ", DIM), *triple(answer.subject, answer.predicate, answer.object))
            return [*hanging(head, 8, width), *_passages(answer.passages, answer.counts, width)]
        case _:
            assert_never(answer)


def _document(answer: ShowDocument, width: int) -> list[Text]:
    entry = answer.document
    facts = [
        ("uri", text((uri(entry.uri), "cyan"))),
        ("state", text(state(entry.state.value))),
        ("why", text((entry.error or "", "red"))),
        ("attempts", text(f"{entry.attempts}" if entry.attempts else "")),
        ("next try", text(local_time(answer.next_try_at))),
        ("source", text(answer.source)),
        ("modified", text(local_time(entry.modified_at))),
        ("committed", text(local_time(entry.committed_at))),
        ("names", text(" · ".join(one_line(name) for name in answer.names))),
        *((key, text(str(value))) for key, value in sorted(answer.metadata.items())),
        *(("left out", text(each.text)) for each in entry.left_out),
    ]
    rows = [[text((name, DIM)), value] for name, value in facts if value.plain]
    head = text(("document  ", DIM), (entry.title or "(no title)", HEADING))
    lines = [*hanging(head, 10, width), *align(rows, indent=2, width=width)]
    lines += _links(answer.links, answer.counts, width)
    lines += _passages(answer.passages, answer.counts, width)
    lines += _triples(answer.triples, answer.counts, width)
    return lines + _phrases(answer.phrases, answer.counts, width)


def _links(links: list[DocumentLink], counts: Mapping[str, int], width: int) -> list[Text]:
    lines = _head("Links", links, counts)
    for each in links:
        target = f"{each.target}#{each.heading}" if each.heading else each.target
        shown = f"  {one_line(each.text)}" if each.text and each.text != each.target else ""
        lines += hanging(text("  ", (one_line(target), "cyan"), (shown, DIM)), 4, width)
    return lines


def _passage(answer: ShowPassage, width: int) -> list[Text]:
    head = text(("passage  ", DIM), (answer.title or "(no title)", HEADING))
    lines = [*hanging(head, 9, width), text("  ", (answer.id, DIM))]
    for part in terminal_safe(answer.text).splitlines():
        lines += indent(Text(part), 2, width)
    lines += _head("Documents", answer.documents, answer.counts)
    for each in answer.documents:
        lines += indent(text((_where(each), "cyan")), 2, width)
    lines += _triples(answer.triples, answer.counts, width)
    lines += _phrases(answer.phrases, answer.counts, width)
    return [*lines, text(("extracted by ", DIM), answer.extractor)] if answer.extractor else lines


def _phrase(answer: ShowPhrase, width: int) -> list[Text]:
    lines = hanging(text(("phrase  ", DIM), (answer.text, HEADING)), 8, width)
    for name, edges in (("Relations", answer.relations), ("Synonyms", answer.synonyms)):
        lines += _head(name, edges, answer.counts)
        lines += _weighted_phrases(edges)
    lines += _triples(answer.triples, answer.counts, width)
    return lines + _passages(answer.passages, answer.counts, width)


def _where(each: PassageOccurrence) -> str:
    return " · ".join(part for part in (uri(each.document), location_text(each.location)) if part)


def _head(name: str, listed: Iterable[object], counts: Mapping[str, int]) -> list[Text]:
    shown = len(list(listed))
    total = counts.get(name.lower(), shown)
    if not total:
        return []
    number = f"  {shown:,} of {total:,}" if total > shown else f"  {total:,}"
    return [Text(), text((name, HEADING), (number, DIM))]


def _weighted_phrases(phrases: list[WeightedPhrase]) -> list[Text]:
    rows = [[text(f"{each.weight:.3f}"), text(each.phrase)] for each in phrases]
    return align(rows, indent=2, right=[0])


def _passages(passages: list[PassageSummary], counts: Mapping[str, int], width: int) -> list[Text]:
    lines = _head("Passages", passages, counts)
    for each in passages:
        where = location_text(each.location, each.title)
        lines += hanging(text("  ", (each.id, DIM), "  ", each.title), 4, width)
        lines += [text("    ", (where, "cyan"))] if where else []
        lines += indent(Text(snippet(each.text, None, 2 * (width - 8))), 4, width)
    return lines


def _triples(triples: list[TripleText], counts: Mapping[str, int], width: int) -> list[Text]:
    lines = _head("Triples", triples, counts)
    for each in triples:
        lines += hanging(text("  ", *triple(each.subject, each.predicate, each.object)), 4, width)
    return lines


def _phrases(phrases: list[str], counts: Mapping[str, int], width: int) -> list[Text]:
    lines = _head("Phrases", phrases, counts)
    return lines + (indent(Text(" · ".join(one_line(phrase) for phrase in phrases)), 2, width) if phrases else [])
