"""An answer on the terminal while it is written."""

import json
import sys
from typing import Any

from cli.client import Client, Refused, read
from cli.errors import Failure
from cli.text import clean
from daemon.contract import EVENT_STREAM, AskProgress, AskResponse, Route


def stream_answer(client: Client, body: Any, timeout_s: float) -> AskResponse:
    """Prints the answer as it grows; returns it whole."""
    shown = ""
    with client.stream(Route.ASK, accept=EVENT_STREAM, timeout_s=timeout_s, body=body) as response:
        event = ""
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                event = value
            elif name == "data":
                data = json.loads(value)
                if event == "text":
                    shown = _show(shown, clean(read(AskProgress, data).text))
                elif event == "answer":
                    answer = read(AskResponse, data)
                    _show(shown, clean(answer.answer))
                    _write("\n")
                    return answer
                elif event == "problem":
                    _write("\n" if shown else "")
                    raise Refused(data)
    raise Failure("the answer broke off.")


def _show(before: str, now: str) -> str:
    """Writes what is new; all of it, on a new line, where the beginning has changed."""
    _write(now[len(before) :] if now.startswith(before) else f"\n{now}")
    return now


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
