"""Tokens of prompts and answers, estimated where the server does not count them."""

from collections.abc import Iterable, Sequence

from memory.llm.client import ChatMessage, Reply
from memory.llm.errors import BadAnswer, ModelError, ModelRefused

CHARS_PER_TOKEN = 3
"""On the safe side for most scripts."""


def text_tokens(texts: Iterable[str]) -> int:
    """Tokens of some texts together, estimated."""
    return sum(map(len, texts)) // CHARS_PER_TOKEN


def prompt_tokens(prompt: Sequence[ChatMessage]) -> int:
    """Tokens of a prompt, estimated."""
    return text_tokens(message["content"] for message in prompt)


def reply_tokens(prompt: Sequence[ChatMessage], reply: Reply) -> tuple[int, int]:
    """Prompt and completion tokens of a reply: as the server counts them, else estimated."""
    return reply.prompt_tokens or prompt_tokens(prompt), reply.completion_tokens or text_tokens([reply.text])


def failed_call_tokens(error: ModelError, prompt: int, max_tokens: int) -> tuple[int, int]:
    """Prompt and completion tokens of a failed call: as the server counted them, else estimated.

    An answer of no use was paid for. An answer that was cut off, which is refused as too long, took all of `max_tokens`.
    `prompt` is the estimate for the prompts that were sent.
    """
    if error.prompt_tokens or error.completion_tokens:
        return error.prompt_tokens, error.completion_tokens
    cut = isinstance(error, ModelRefused) and isinstance(error.__context__, BadAnswer)
    return (prompt if cut or isinstance(error, BadAnswer) else 0, max_tokens if cut else 0)
