"""A question of several steps on a terminal: queries, results, and changes of the memory, also while it is answered."""

import sys
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from rich.text import Text

from cli.client.http import Client, RequestRefused
from cli.client.typed_answers import incompatible_answer, parse_answer
from cli.errors import CommandError
from cli.output import print_lines, width
from cli.render.lines import DIM, HEADING, indent, text
from cli.terminal_text import count, one_line, terminal_safe, truncate
from daemon.contract.answering.ask import AskProgress, AskResponse
from daemon.contract.answering.steps import (
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
    parse_step_event,
)
from daemon.contract.http.routes import Route

MAX_LISTED_NAMES = 6
"""Maximum number of phrases, and of titles, that are listed per result."""
CHANGE_MARKS = {"inserted": ("+", "green"), "updated": ("~", "yellow"), "merged": ("=", "magenta")}
STOP_REASON_TEXTS = {
    "enough": "the memory suffices",
    "answered": "the last thought answers",
    "steps": "all steps are made",
    "nothing new": "nothing new was found",
    "calls": "no more calls are allowed",
    "tokens": "no more tokens are allowed",
    "seconds": "the time for steps is over",
    "model": "the model failed",
}
"""Text for each value of `stopped`."""


def step_event_lines(event: KnownStepEvent, width: int) -> list[Text]:
    match event:
        case StepBegan():
            return [
                text(
                    (f"Step {event.step}", HEADING),
                    (f"  {count(event.points, 'point')} in memory", DIM),
                )
            ]
        case StepJudged():
            return _judgement(event, width)
        case StepFound():
            return _found(event.inquiry, width)
        case StepChanged():
            return [line for change in event.changes for line in _change(change, width)] + [
                text("  ", ("!", "red"), f" refused ({each.why}): {truncate(one_line(each.what), width - 24)}")
                for each in event.refused
            ]
        case StepRetrieved():
            head = text((f"Step {event.step}  ", HEADING), (one_line(event.query), "italic"))
            new = f"{count(event.passages, 'passage')}, {event.new:,} new" + (": " if event.titles else "")
            return [
                *indent(head, 0, width),
                *indent(text((new, DIM), _listing(event.titles, event.new)), 2, width),
            ]
        case StepThought():
            mark = ("!", "green") if event.thought.answers else ("…", "yellow")
            return indent(text(mark, " ", event.thought.text), 2, width)
        case StepsEnded():
            return [text((STOP_REASON_TEXTS.get(event.stopped, event.stopped), DIM)), Text()]


def _judgement(event: StepJudged, width: int) -> list[Text]:
    if event.enough:
        return [text("  ", ("the memory suffices", "green"))]
    return [line for concern in event.concerns for line in _concern(concern, width)]


def _concern(concern: Concern, width: int) -> list[Text]:
    where = f"local {concern.point}" if concern.point else "global"
    return indent(text(("? ", "cyan"), (where, DIM), "  ", concern.text), 2, width)


def _found(inquiry: Inquiry, width: int) -> list[Text]:
    subquery = text(("→ ", "cyan"), (one_line(inquiry.concern.subquery), "italic"))
    phrases = [each.phrase for each in inquiry.entities]
    sizes = (
        f"{len(phrases):,} of {count(inquiry.candidates, 'phrase')}, {count(len(inquiry.triples), 'triple')}, "
        f"{count(len(inquiry.passages), 'passage')}"
    )
    lines = [*indent(subquery, 4, width), text("    ", (sizes, DIM))]
    for what, names in (("", phrases), ("in ", [each.title or each.id[:8] for each in inquiry.passages])):
        if names:
            lines += indent(text((what, DIM), _listing(names, len(names))), 6, width)
    return lines


def _change(change: PointChange, width: int) -> list[Text]:
    mark = CHANGE_MARKS.get(change.kind, ("*", ""))
    merged = [point.id for point in change.before if point.id != change.point.id]
    from_ = f" of {', '.join(point.id for point in change.before)}" if change.kind == "merged" and merged else ""
    head = text(mark, f" {change.point.id} ", (f"{change.kind}{from_}", DIM), "  ", one_line(change.point.description))
    return [*indent(head, 2, width), *indent(text((entities_text(change.point), DIM)), 6, width)]


def entities_text(point: MemoryPoint) -> str:
    """Returns the point's entities; entities that the graph lacks are in brackets."""
    absent = set(point.absent)
    return " · ".join(f"({each})" if each in absent else each for each in map(one_line, point.entities))


def _listing(names: Sequence[str], total: int) -> str:
    shown = [one_line(name) for name in names[:MAX_LISTED_NAMES]]
    more = f" and {total - len(shown):,} more" if total > len(shown) else ""
    return f"{' · '.join(shown)}{more}"


def stream_answer(client: Client, body: object) -> dict[str, Any]:
    """Prints the steps and the answer as they arrive, and returns the JSON of the complete answer."""
    shown = ""
    with client.events(Route.ASK, body) as events:
        for event, data in events:
            if event == "step":
                _print_step(data)
            elif event == "text":
                shown = _print_new_text(shown, terminal_safe(parse_answer(AskProgress, data).text))
            elif event == "answer":
                answer: dict[str, Any] = data
                _print_new_text(shown, terminal_safe(parse_answer(AskResponse, data).answer))
                _write("\n")
                return answer
            elif event == "problem":
                _write("\n" if shown else "")
                raise RequestRefused(data)
    raise CommandError("the answer broke off.")


def _print_step(data: object) -> None:
    try:
        event = parse_step_event(data)
    except ValidationError as error:
        raise incompatible_answer(error) from None
    if event is not None:
        print_lines(step_event_lines(event, width()))


def _print_new_text(before: str, now: str) -> str:
    """Writes the new part of the text; if its beginning has changed, writes the whole text on a new line."""
    _write(now[len(before) :] if now.startswith(before) else f"\n{now}")
    return now


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
