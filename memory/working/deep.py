"""A deep question, from text to answer: HGMem's steps over one snapshot (arXiv 2512.23959, section 3)."""

from collections.abc import Awaitable, Callable
from typing import Any

from memory.llm.client import ModelClient
from memory.types import Encoder
from memory.working.types import DeepAnswer, DeepSettings, Event, Memory
from store.snapshot import Snapshot

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that occupies the processor for some milliseconds beside the event loop; `asyncio.to_thread` does."""


async def ask_deep(
    question: str,
    snapshot: Snapshot,
    encoder: Encoder,
    client: ModelClient,
    settings: DeepSettings | None = None,
    earlier: Memory | None = None,
    on_event: Callable[[Event], None] = lambda _event: None,
    in_thread: InThread | None = None,
) -> DeepAnswer:
    """The answer to `question` from the memory as of `snapshot`, with the trace of how it came about.

    `earlier` are points of earlier questions; those that this commit no longer vouches for are dropped, and named in the
    trace. `on_event` is called on the event loop as things happen, and must return at once. `in_thread` lends the daemon's
    own query threads, `asyncio.to_thread` by default.

    Where the model fails in a step, or a budget is reached, the answer is made from what there is and `note` says so; where
    it fails for the answer too, the points' descriptions are the answer. Raises `memory.llm.errors.ModelError` when there
    is nothing to answer from, which can only be while the memory has no point; `ValueError` for settings that cannot be.
    """
    raise NotImplementedError
