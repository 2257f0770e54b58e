"""`query` and `ask` on a terminal: ranked passages, why each was found, the answer, its sources, and its cost."""

from typing import TYPE_CHECKING

from rich.text import Text

from cli.render.highlights import match_spans, query_words, snippet
from cli.render.lines import DIM, HEADING, hanging, indent, text, triple
from cli.terminal_text import count, location_text, milliseconds, one_line, terminal_safe, uri

if TYPE_CHECKING:
    from daemon.contract.answering.ask import AskResponse
    from daemon.contract.query import (
        Explanation,
        LedByLink,
        PassageExplanation,
        PathStep,
        QueryResponse,
        RankedPassage,
        ScoredTriple,
        SeedPhrase,
    )

WEAK = "Nothing here answers this well."
SNIPPET_LINES = 3
"""Number of lines that are shown of a passage."""
MATCH_STYLE = "bold yellow"
MAX_LISTED_TRIPLES = 20
"""Maximum number of triples, and of seeds, that are listed."""
MAX_SEEDS = 5
MIN_SHARE = 0.005
"""Shares below this value are summed up in one entry."""


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


def explanation_lines(why: "PassageExplanation", width: int) -> list[Text]:
    """Returns two or three lines to be printed below a passage."""
    parts = [text(f"similarity {why.similarity:.3f}")]
    if why.own_share is not None:
        parts += [text((_percent(why.own_share), HEADING), " from the passage itself"), *_seeds_of(why)]
    if why.near_duplicate_of is not None:
        parts.append(text(f"one of {why.group_size} near-duplicates, which share one score"))
    if why.link is not None:
        parts.append(_link(why.link))
    if why.hub_factor is not None:
        parts.append(text(f"damped as a hub: keeps {_percent(why.hub_factor)} of what comes from others"))
    lines = indent(_joined([text(("why   ", HEADING)), *parts]), 4, width)
    if why.path is not None:
        path = text(("path  ", HEADING))
        for at, step in enumerate(why.path.steps):
            path.append_text(_step(step, first=at == 0))
        path.append_text(text((f"  {_percent(why.path.share)} of the score", DIM)))
        lines += indent(path, 4, width)
    return lines


def stage_times_line(explained: "Explanation") -> Text:
    spent = sorted(explained.stages_ms.items(), key=lambda stage: -stage[1])
    return text(("Time  ", HEADING), " · ".join(f"{name} {milliseconds(took)}" for name, took in spent))


def _seeds_of(why: "PassageExplanation") -> list[Text]:
    shown = [seed for seed in why.seeds if seed.share >= MIN_SHARE][:MAX_SEEDS]
    parts = [text((_percent(seed.share), HEADING), f" from “{one_line(seed.phrase)}”") for seed in shown]
    rest = sum(seed.share for seed in why.seeds) - sum(seed.share for seed in shown)
    if rest >= MIN_SHARE:
        parts.append(text(f"{_percent(rest)} from other phrases"))
    if why.other_share is not None and why.other_share >= MIN_SHARE:
        named = ", ".join(one_line(other.title) or other.id for other in why.others[:2] if other.share >= MIN_SHARE)
        parts.append(
            text(
                (_percent(why.other_share), HEADING),
                " from other passages",
                (f" ({named})" if named else "", DIM),
            )
        )
    return parts


def _link(link: "LedByLink") -> Text:
    shown = f" “{one_line(link.text)}”" if link.text else ""
    return text(f"linked{shown} from ", (one_line(link.source.title) or link.source.document, "cyan"))


def _joined(parts: list[Text]) -> Text:
    line = parts[0]
    for at, part in enumerate(parts[1:]):
        line.append_text(text((" · ", DIM)) if at else Text())
        line.append_text(part)
    return line


def _step(step: "PathStep", first: bool) -> Text:
    name = text((one_line(step.text) or step.id or "", "cyan" if step.kind == "passage" else HEADING))
    if first:
        return name
    match step.edge:
        case "relation":
            predicate = step.triples[0].predicate if step.triples else "related"
            titles = dict.fromkeys(one_line(each.title) for triple in step.triples for each in triple.passages)
            by = f" ({', '.join(list(titles)[:2])})" if any(titles) else ""
            arrow = text((" — ", DIM), (one_line(predicate), "italic"), (f"{by} → ", DIM))
        case "mention":
            arrow = text((" — mentioned with → ", DIM))
        case "synonym":
            arrow = text((f" ≈ {step.weight or 0:.2f} ≈ ", DIM))
        case _:
            arrow = text((" in " if step.kind == "passage" else " with ", DIM))
    return arrow.append_text(name)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def answer_lines(answer: "AskResponse", width: int) -> list[Text]:
    lines = [line for part in terminal_safe(answer.answer).splitlines() for line in indent(Text(part), 0, width)]
    return [*lines, *evidence_lines(answer, width)]


def evidence_lines(answer: "AskResponse", width: int) -> list[Text]:
    """Returns the lines with the answer's sources and cost."""
    lines: list[Text] = []
    if answer.reasoning:
        lines += [Text(), text(("Reasoning", HEADING)), *indent(Text(terminal_safe(answer.reasoning)), 4, width)]
    if answer.citations:
        lines += [Text(), text(("Sources", HEADING))]
    for citation in answer.citations:
        title = text((f"{citation.rank:>2}", HEADING), "  ", (citation.title or "(no title)", HEADING))
        lines += hanging(title, 4, width)
        lines += indent(text((uri(citation.document), "cyan")), 4, width)
        lines += indent(Text(snippet(citation.text, None, 2 * (width - 6))), 4, width)
    tokens = f"{answer.tokens.prompt:,} + {answer.tokens.completion:,} tokens"
    steps = f"{count(len(answer.steps), 'step')}, {count(answer.calls, 'call')} · " if answer.steps else ""
    if answer.note:
        lines += [Text(), *indent(text((answer.note, DIM)), 0, width)]
    if answer.session is not None:
        lines += [Text(), text(("session ", DIM), answer.session.name, (_session(answer), DIM))]
    return [*lines, Text(), text((f"{steps}{tokens} · {milliseconds(answer.took_ms)}", DIM))]


def _session(answer: "AskResponse") -> str:
    session = answer.session
    if session is None or not session.questions:
        return ": begun with this question"
    kept = count(session.points - session.forgotten, "point")
    return f": went on from {kept} of {count(session.questions, 'question')}"
