"""The context that all parts of one deep question share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from memory.answering.answer_form import DEFAULT_FORM, AnswerForm
from memory.answering.budget import Spending
from memory.answering.working_memory.records.events import DeepEvent
from memory.answering.working_memory.records.trace import DeepSettings
from memory.llm.client import ModelClient
from memory.types import Encoder
from store.snapshot import Snapshot

RunInThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that occupies the processor for some milliseconds outside the event loop, such as `asyncio.to_thread`."""


@dataclass(frozen=True, slots=True)
class DeepContext:
    """One deep question on one snapshot. `on_event` is called on the event loop and returns immediately."""

    question: str
    snapshot: Snapshot
    encoder: Encoder
    client: ModelClient
    settings: DeepSettings
    spending: Spending
    on_event: Callable[[DeepEvent], None]
    in_thread: RunInThread
    form: AnswerForm = DEFAULT_FORM
    shown_passages: list[int] = field(default_factory=list)
    """Numbers of passages that the model was shown after it had refused more; later steps start with the smallest."""
