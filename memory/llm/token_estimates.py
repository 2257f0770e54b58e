"""Estimates the tokens of prompts and answers if the server does not count them."""

from collections.abc import Iterable, Sequence

from memory.llm.chat_completion import ChatMessage, Reply

CHARS_PER_TOKEN = 3
"""A cautious value for most scripts."""


def text_tokens(texts: Iterable[str]) -> int:
    """Returns the estimated number of tokens of all texts together."""
    return sum(map(len, texts)) // CHARS_PER_TOKEN


def prompt_tokens(prompt: Sequence[ChatMessage]) -> int:
    """Returns the estimated number of tokens of a prompt."""
    return text_tokens(message["content"] for message in prompt)


def reply_tokens(prompt: Sequence[ChatMessage], reply: Reply) -> tuple[int, int]:
    """Returns the prompt and completion tokens of a reply: the server's counts, or estimates."""
    return reply.prompt_tokens or prompt_tokens(prompt), reply.completion_tokens or text_tokens([reply.text])
