"""A question of several steps on a terminal: what is asked, what was found, what became of the memory."""

from collections.abc import Iterable, Sequence

from rich.text import Text

from cli.render.lines import DIM, HEAD, indent, text
from cli.text import count, cut, one_line
from daemon.contract.steps import (
    Concern,
    Inquiry,
    KnownStepEvent,
    MemoryPoint,
    PointChange,
    StepBegan,
    StepChanged,
    StepFound,
    StepJudged,
    StepRetrieved,
    StepsEnded,
    StepThought,
)

MAX_LISTED = 6
"""Phrases and titles that are listed of what was found."""
MARKS = {"inserted": ("+", "green"), "updated": ("~", "yellow"), "merged": ("=", "magenta")}
ENDED = {
    "enough": "the memory suffices",
    "answered": "the last thought answers",
    "steps": "all steps are made",
    "nothing new": "nothing new was found",
    "calls": "no more calls are allowed",
    "tokens": "no more tokens are allowed",
    "seconds": "the time for steps is over",
    "model": "the model failed",
}
"""What `stopped` means."""


def event(told: KnownStepEvent, width: int) -> list[Text]:
    """What is printed when it happens."""
    match told:
        case StepBegan():
            return [text((f"Step {told.step}", HEAD), (f"  {count(told.points, 'point')} in memory", DIM))]
        case StepJudged():
            return _judgement(told, width)
        case StepFound():
            return _found(told.inquiry, width)
        case StepChanged():
            return [line for change in told.changes for line in _change(change, width)] + [
                text("  ", ("!", "red"), f" not taken ({each.why}): {cut(one_line(each.what), width - 24)}")
                for each in told.refused
            ]
        case StepRetrieved():
            head = text((f"Step {told.step}  ", HEAD), (one_line(told.query), "italic"))
            new = f"{count(told.passages, 'passage')}, {told.new:,} new" + (": " if told.titles else "")
            return [*indent(head, 0, width), *indent(text((new, DIM), _listing(told.titles, told.new)), 2, width)]
        case StepThought():
            mark = ("!", "green") if told.thought.answers else ("…", "yellow")
            return indent(text(mark, " ", told.thought.text), 2, width)
        case StepsEnded():
            return [text((ENDED.get(told.stopped, told.stopped), DIM)), Text()]


def _judgement(told: StepJudged, width: int) -> list[Text]:
    if told.enough:
        return [text("  ", ("the memory suffices", "green"))]
    return [line for concern in told.concerns for line in _concern(concern, width)]


def _concern(concern: Concern, width: int) -> list[Text]:
    where = f"local {concern.point}" if concern.point else "global"
    return indent(text(("? ", "cyan"), (where, DIM), "  ", concern.text), 2, width)


def _found(inquiry: Inquiry, width: int) -> list[Text]:
    asked = text(("→ ", "cyan"), (one_line(inquiry.concern.subquery), "italic"))
    phrases = [each.phrase for each in inquiry.entities]
    sizes = (
        f"{len(phrases):,} of {count(inquiry.candidates, 'phrase')}, {count(len(inquiry.triples), 'triple')}, "
        f"{count(len(inquiry.passages), 'passage')}"
    )
    lines = [*indent(asked, 4, width), text("    ", (sizes, DIM))]
    for what, names in (("", phrases), ("in ", [each.title or each.id[:8] for each in inquiry.passages])):
        if names:
            lines += indent(text((what, DIM), _listing(names, len(names))), 6, width)
    return lines


def _change(change: PointChange, width: int) -> list[Text]:
    mark = MARKS.get(change.kind, ("*", ""))
    of = [point.id for point in change.before if point.id != change.point.id]
    from_ = f" of {', '.join(point.id for point in change.before)}" if change.kind == "merged" and of else ""
    head = text(mark, f" {change.point.id} ", (f"{change.kind}{from_}", DIM), "  ", one_line(change.point.description))
    return [*indent(head, 2, width), *indent(text((entities(change.point), DIM)), 6, width)]


def entities(point: MemoryPoint) -> str:
    """The point's entities, those that the graph lacks in brackets."""
    absent = set(point.absent)
    return " · ".join(f"({each})" if each in absent else each for each in map(one_line, point.entities))


def _listing(names: Sequence[str], of: int) -> str:
    shown = [one_line(name) for name in names[:MAX_LISTED]]
    more = f" and {of - len(shown):,} more" if of > len(shown) else ""
    return f"{' · '.join(shown)}{more}"


def points(memory: Iterable[MemoryPoint], width: int) -> list[Text]:
    """Points, one paragraph each."""
    lines: list[Text] = []
    for point in memory:
        lines += indent(text((point.id, HEAD), f"  {one_line(point.description)}"), 0, width)
        lines += indent(text((entities(point), DIM)), 4, width)
    return lines
