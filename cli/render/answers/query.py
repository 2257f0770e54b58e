"""`query` on a terminal: ranked passages with their locations, linked triples, seeds, and the time."""

from typing import TYPE_CHECKING

from cli.query_highlights import match_spans, query_words, snippet
from cli.render.answers.explain import explanation_lines, stage_times_line
from cli.render.lines import DIM, HEADING, hanging, indent, text, triple
from cli.render.styled_text import Text
from cli.terminal_text import count, location_text, milliseconds, one_line, uri

if TYPE_CHECKING:
    from daemon.contract.query import QueryResponse, RankedPassage, ScoredTriple, SeedPhrase

WEAK = "Nothing here answers this well."
SNIPPET_LINES = 3
"""Number of lines that are shown of a passage."""
MATCH_STYLE = "bold yellow"
MAX_LISTED_TRIPLES = 20
"""Maximum number of triples, and of seeds, that are listed."""


def query_lines(answer: "QueryResponse", width: int) -> list[Text]:
    lines = [text((WEAK, "yellow")), Text()] if answer.weak else []
    reasons = {why.rank: why for why in answer.explain.passages} if answer.explain else {}
    for passage in answer.passages:
        lines += _passage(passage, answer.query, width)
        lines += explanation_lines(reasons[passage.rank], width) if passage.rank in reasons else []
        lines.append(Text())
    if not answer.passages:
        lines += [text("No passage was found."), Text()]
    if answer.triples:
        lines += _triples(answer.triples)
    if answer.seeds:
        lines += _seeds(answer.seeds, width)
    if answer.note:
        lines += indent(text(("note  ", HEADING), answer.note), 0, width)
    if answer.explain and answer.explain.stages_ms:
        lines += indent(stage_times_line(answer.explain), 0, width)
    lines.append(_foot(answer))
    return lines


def _passage(passage: "RankedPassage", query: str, width: int) -> list[Text]:
    words = query_words(query)
    title = one_line(passage.title) or "(no title)"
    head = text((f"{passage.rank:>2}", HEADING), f"  {passage.score:.4f}  ", (title, HEADING))
    cosine = "" if passage.cosine is None else f"cosine {passage.cosine:.2f}"
    where = [uri(passage.document), location_text(passage.location, title), cosine]
    if passage.also_in:
        where.append(f"also in {count(len(passage.also_in), 'other document')}")
    body = Text(snippet(passage.text, words, SNIPPET_LINES * (width - 6)))
    for start, end in match_spans(words, body.plain):
        body.stylize(MATCH_STYLE, start, end)
    versions: list[Text] = []
    if passage.conflicting_values:
        differ = text(("versions differ in ", HEADING), one_line(", ".join(passage.conflicting_values)))
        versions = indent(differ, 4, width)
    source = text((" · ".join(part for part in where if part), "cyan"))
    return [*hanging(head, 12, width), *indent(source, 4, width), *versions, *indent(body, 4, width)]


def _triples(triples: "list[ScoredTriple]") -> list[Text]:
    lines = [text(("Triples", HEADING))]
    for each in triples[:MAX_LISTED_TRIPLES]:
        kept = ("  kept     ", "green") if each.kept else ("  dropped  ", DIM)
        lines.append(text(kept, f"{each.score:.3f}  ", *triple(each.subject, each.predicate, each.object)))
    return [*lines, *_more(len(triples)), Text()]


def _seeds(seeds: "list[SeedPhrase]", width: int) -> list[Text]:
    named = Text()
    for at, seed in enumerate(seeds[:MAX_LISTED_TRIPLES]):
        named.append_text(text((" · ", DIM) if at else "", one_line(seed.phrase), (f" {seed.weight:.3f}", DIM)))
    return [text(("Seeds", HEADING)), *indent(named, 2, width), *_more(len(seeds)), Text()]


def _more(listed: int) -> list[Text]:
    return [text((f"  and {listed - MAX_LISTED_TRIPLES} more", DIM))] if listed > MAX_LISTED_TRIPLES else []


def _foot(answer: "QueryResponse") -> Text:
    return text(
        (f"{count(len(answer.passages), 'passage')} · mode {answer.mode} · commit {answer.commit} · "
         f"{milliseconds(answer.took_ms)}", DIM)
    )  # fmt: skip
