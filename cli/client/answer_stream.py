"""Prints an answer on the terminal while it is made: its steps, then its text."""

import sys
from typing import Any

from pydantic import ValidationError

from cli.client.http import Client, RequestRefused
from cli.client.typed_answers import incompatible_answer, parse_answer
from cli.errors import CommandError
from cli.output import print_lines, width
from cli.terminal_text import terminal_safe
from daemon.contract.answering.ask import AskProgress, AskResponse
from daemon.contract.http.client import EventStream
from daemon.contract.http.routes import EVENT_STREAM, Route


def stream_answer(client: Client, body: object) -> dict[str, Any]:
    """Prints the steps and the answer as they arrive, and returns the JSON of the complete answer."""
    shown = ""
    with client.stream(Route.ASK, accept=EVENT_STREAM, body=body) as response:
        stream = EventStream()
        for event, data in filter(None, map(stream.read_line, response.lines())):
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
    from cli.render.answers.steps import step_event_lines
    from daemon.contract.answering.steps import parse_step_event

    try:
        event = parse_step_event(data)
    except ValidationError as error:
        raise incompatible_answer(error) from None
    if event is not None:
        print_lines(step_event_lines(event, width()))


def _print_new_text(before: str, now: str) -> str:
    """Writes the new part of the text; if its beginning has changed, writes all of it on a new line."""
    _write(now[len(before) :] if now.startswith(before) else f"\n{now}")
    return now


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
