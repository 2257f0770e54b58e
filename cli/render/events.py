"""`watch` on a terminal: one line per event."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli.render.lines import DIM, STATE_STYLES, text
from cli.render.styled_text import Text
from cli.terminal_text import local_time, one_line, uri

if TYPE_CHECKING:
    from daemon.contract.status import Event

_FIXED = ("id", "time", "event", "uri")


def event_line(each: "Event") -> Text:
    """Return the line of an event: 12:00:01  indexed  file:///…  title="…"."""
    when = local_time(each.time, "%H:%M:%S")
    line = text((when, DIM), f"  {each.event:<8}  ")
    line.stylize(STATE_STYLES.get(each.event, ""), len(when) + 2)
    line.append_text(text(uri(each.uri) if each.uri else ""))
    details = _details(each.model_extra or {})
    line.append_text(text("  " if each.uri and details else "", (details, DIM)))
    return line


def _details(extra: Mapping[str, Any]) -> str:
    parts = (f"{key}={one_line(str(value))}" for key, value in extra.items() if value not in (None, "", [], {}))
    return " ".join(part for part in parts if part.partition("=")[0] not in _FIXED)
