"""`query --explain` on a terminal: the composition of each passage's score, and the strongest path to it."""

from typing import TYPE_CHECKING

from cli.render.lines import DIM, HEADING, indent, text
from cli.render.styled_text import Text
from cli.terminal_text import milliseconds, one_line

if TYPE_CHECKING:
    from daemon.contract.query import Explanation, LedByLink, PassageExplanation, PathStep

MAX_SEEDS = 5
MIN_SHARE = 0.005
"""Smaller shares are summed up in one entry."""


def explanation_lines(why: "PassageExplanation", width: int) -> list[Text]:
    """Returns two or three lines to be printed below a passage."""
    parts = [text(f"similarity {why.similarity:.3f}")]
    if why.own_share is not None:
        parts += [text((_percent(why.own_share), HEADING), " from the passage itself"), *_seeds(why)]
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


def _seeds(why: "PassageExplanation") -> list[Text]:
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
