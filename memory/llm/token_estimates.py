"""Estimates the tokens of prompts and answers if the server does not count them."""

from collections.abc import Iterable, Sequence

from memory.llm.chat_completion import ChatMessage, Reply
from memory.llm.errors import BadAnswer, ModelError, ModelRefused

CHARS_PER_TOKEN = 3
"""A cautious value for most scripts."""


def text_tokens(texts: Iterable[str]) -> int:
    """Return the estimated number of tokens of all texts together."""
    return sum(map(len, texts)) // CHARS_PER_TOKEN


def prompt_tokens(prompt: Sequence[ChatMessage]) -> int:
    """Return the estimated number of tokens of a prompt."""
    return text_tokens(message["content"] for message in prompt)


def reply_tokens(prompt: Sequence[ChatMessage], reply: Reply) -> tuple[int, int]:
    """Return the prompt and completion tokens of a reply: the server's counts, or estimates."""
    return reply.prompt_tokens or prompt_tokens(prompt), reply.completion_tokens or text_tokens([reply.text])


def failed_call_tokens(error: ModelError, prompt: int, max_tokens: int) -> tuple[int, int]:
    """Return the prompt and completion tokens of a failed call: the server's counts, or estimates.

    An unusable answer is charged. An answer that was cut off, which is reported as too long, used all of `max_tokens`. `prompt`
    is the estimate for the prompts that were sent.
    """
    if error.prompt_tokens or error.completion_tokens:
        return error.prompt_tokens, error.completion_tokens
    cut = isinstance(error, ModelRefused) and isinstance(error.__context__, BadAnswer)
    return (prompt if cut or isinstance(error, BadAnswer) else 0, max_tokens if cut else 0)
