"""An answer on the terminal while it is made: its steps as they happen, its text as it is written."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import httpx
from pydantic import ValidationError

from cli.client import Client, Refused, misunderstood, read
from cli.errors import Failure
from cli.output import show, width
from cli.text import clean
from daemon.contract import EVENT_STREAM, AskProgress, AskResponse, Route


def stream_answer(client: Client, body: Any, timeout_s: float) -> dict[str, Any]:
    """Prints the steps and the answer as they come; returns the whole answer's JSON."""
    shown = ""
    with client.stream(Route.ASK, accept=EVENT_STREAM, timeout_s=timeout_s, body=body) as response:
        for event, data in _events(response):
            if event == "step":
                _step(data)
            elif event == "text":
                shown = _show(shown, clean(read(AskProgress, data).text))
            elif event == "answer":
                answer: dict[str, Any] = data
                _show(shown, clean(read(AskResponse, data).answer))
                _write("\n")
                return answer
            elif event == "problem":
                _write("\n" if shown else "")
                raise Refused(data)
    raise Failure("the answer broke off.")


def _events(response: httpx.Response) -> Iterator[tuple[str, Any]]:
    event = ""
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            event = value
        elif name == "data":
            yield event, json.loads(value)


def _step(data: Any) -> None:
    from cli.render.steps import event
    from daemon.contract.steps import read_event

    try:
        told = read_event(data)
    except ValidationError as error:
        raise misunderstood(error) from None
    if told is not None:
        show(event(told, width()))


def _show(before: str, now: str) -> str:
    """Writes what is new; all of it, on a new line, where the beginning has changed."""
    _write(now[len(before) :] if now.startswith(before) else f"\n{now}")
    return now


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
