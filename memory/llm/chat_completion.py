"""Sends one chat completion with OpenAI's client, returns the parts of the answer that hippod uses, and counts or estimates
tokens.

A server's context must hold the prompt and the answer. The number of answer tokens to request is learnt from refused requests
(`AnswerLengths`). It is not computed from the text of a refusal: servers word refusals differently, and some count only a part
of the prompt.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from memory.llm.error_classification import PROTOCOL_ERRORS, Failures, TransientError
from memory.llm.errors import ModelError
from memory.llm.rate_headers import RateLimit, rate_limit_of
from memory.llm.repetition import ends_in_repetition
from memory.llm.response_format import JsonSchema, ServerCapabilities

REPETITION_CHECK_CHARS = 400
"""Number of characters of a streamed answer between two checks for repetition."""
MAX_TOKENS = 10**9
"""Larger token counts are treated as invalid."""
ChatMessage = dict[str, str]

CHARS_PER_TOKEN = 3
"""Assumed length of a token. Tokens of most scripts are longer, so estimated counts are too high."""
DEFAULT_MAX_TOKENS = 4096
"""Maximum tokens of an answer, unless the caller gives another number."""
REDUCED_MAX_TOKENS = 1024
"""Maximum tokens of an answer after a server refused a higher number; enough for a passage of the default length."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of the section `[llm]`. `key` is the secret itself."""

    base_url: str
    model: str
    key: str | None = None
    timeout_s: float = 60.0
    max_retries: int = 5
    temperature: float = 0.0

    def __repr__(self) -> str:
        return f"ModelSettings({self.base_url!r}, {self.model!r})"


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer. `cut`: the answer reached its length limit. The token counts are the server's; 0 if it reports none."""

    text: str
    cut: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    rate_limit: RateLimit | None = None
    """The rate limit in the server's headers."""


class Chat:
    """A call sends one request. It is repeated immediately only to omit an option that the server refused."""

    def __init__(self, settings: ModelSettings, capabilities: ServerCapabilities) -> None:
        import openai  # half a second of imports, needed only if a model is configured

        self._settings = settings
        self._capabilities = capabilities
        self._answer_lengths = AnswerLengths()
        self._failures = Failures(settings.base_url, settings.key, settings.timeout_s, capabilities)
        self._openai = openai.AsyncOpenAI(
            base_url=settings.base_url,
            api_key=settings.key or "none",
            timeout=settings.timeout_s,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    def at_temperature(self, temperature: float) -> "Chat":
        """Returns the same connection with another temperature."""
        other = copy(self)
        other._settings = replace(self._settings, temperature=temperature)
        return other

    async def close(self) -> None:
        await self._openai.close()

    async def complete(
        self, messages: Sequence[ChatMessage], schema: JsonSchema | None, json_mode: str, max_tokens: int
    ) -> Reply:
        """Raises TransientError or ModelRefused.

        The whole answer must arrive within the time limit. After a timeout, this server's answers are streamed, so that the
        limit applies to the time without progress. Once an answer has repeated itself up to its length limit, answers are
        streamed too, so that repetitions can be ended early.
        """
        import openai

        if self._capabilities.needs_streams:
            reply = Reply("")
            async with aclosing(self.stream(messages, schema, json_mode, max_tokens)) as replies:
                async for reply in replies:  # noqa: B007 - only the last reply is used
                    pass
            return reply
        while True:
            options, answer_tokens = self._options(messages, schema, json_mode, max_tokens)
            try:
                async with asyncio.timeout(self._settings.timeout_s):
                    raw: Any = await self._openai.chat.completions.with_raw_response.create(**options)
                reply = _reply(raw.parse(), rate_limit_of(raw.headers))
                self._capabilities.needs_streams |= reply.cut and ends_in_repetition(reply.text)
                return reply
            except (openai.OpenAIError, TimeoutError, *PROTOCOL_ERRORS) as error:
                self._capabilities.needs_streams |= isinstance(error, openai.APITimeoutError | TimeoutError)
                reduce = partial(self._answer_lengths.reduce, _chars(messages), max_tokens, answer_tokens)
                self._failures.raise_unless_repeatable(error, reduce)

    async def stream(
        self, messages: Sequence[ChatMessage], schema: JsonSchema | None, json_mode: str, max_tokens: int
    ) -> AsyncGenerator[Reply, None]:
        """Yields the answer while the server sends it; each Reply contains the whole text so far.

        The time limit applies to each wait for more text. An answer that repeats itself is ended and marked as `cut`. Raises
        TransientError or ModelRefused.
        """
        import openai

        while True:
            options, answer_tokens = self._options(messages, schema, json_mode, max_tokens)
            if "stream_options" not in self._capabilities.dropped:
                options["stream_options"] = {"include_usage": True}
            try:
                pieces: Any = await self._openai.chat.completions.create(stream=True, **options)
                break
            except (openai.OpenAIError, *PROTOCOL_ERRORS) as error:
                reduce = partial(self._answer_lengths.reduce, _chars(messages), max_tokens, answer_tokens)
                self._failures.raise_unless_repeatable(error, reduce)
        reply, finished, checked = Reply("", rate_limit=rate_limit_of(pieces.response.headers)), False, 0
        try:
            async with pieces:
                if _is_whole(pieces):
                    async with asyncio.timeout(self._settings.timeout_s):
                        whole = await _read_whole(pieces)
                    yield whole
                    return
                while (piece := await self._next_piece(pieces)) is not None:
                    for choice in (piece.choices or [])[:1]:
                        finished = finished or choice.finish_reason is not None
                        more = _text(getattr(choice.delta, "content", None))
                        reply = replace(reply, text=reply.text + more, cut=choice.finish_reason == "length")
                    if piece.usage is not None:
                        reply = replace(
                            reply,
                            prompt_tokens=_tokens(piece.usage, "prompt_tokens"),
                            completion_tokens=_tokens(piece.usage, "completion_tokens"),
                        )
                    if len(reply.text) - checked > REPETITION_CHECK_CHARS:
                        checked = len(reply.text)
                        if ends_in_repetition(reply.text):
                            yield replace(reply, cut=True)
                            return  # closing the connection stops the server
                    yield reply
        except Exception as error:
            # Once a stream has begun, OpenAI's client raises the transport's own errors.
            if isinstance(error, ModelError):
                raise
            if isinstance(error, TimeoutError) or type(error).__name__ == "ReadTimeout":
                raise self._failures.stalled_stream() from None
            raise self._failures.broken_stream(error) from None
        if not finished:
            raise self._failures.unfinished_stream()

    async def _next_piece(self, pieces: Any) -> Any:
        """Returns the next piece of a stream, or None at its end. Raises TimeoutError if no piece arrives within the time
        limit."""
        async with asyncio.timeout(self._settings.timeout_s):
            return await anext(pieces, None)

    def _options(
        self, messages: Sequence[ChatMessage], schema: JsonSchema | None, json_mode: str, max_tokens: int
    ) -> tuple[dict[str, Any], int]:
        """Returns the request, and the number of answer tokens in it."""
        answer_tokens = self._answer_lengths.tokens_to_ask(_chars(messages), max_tokens)
        options = self._capabilities.options(schema, json_mode, self._settings.temperature, answer_tokens)
        return {"model": self._settings.model, "messages": list(messages), **options}, answer_tokens


def _chars(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message["content"]) for message in messages)


def _reply(answer: Any, rate_limit: RateLimit | None) -> Reply:
    """Returns the parts of a completion that hippod uses; a server may omit any of them."""
    choices = getattr(answer, "choices", None)
    if not choices:
        raise TransientError("protocol", "the model server's answer contains no message")
    message, usage = choices[0].message, getattr(answer, "usage", None)
    prompt, completion = _tokens(usage, "prompt_tokens"), _tokens(usage, "completion_tokens")
    cut = choices[0].finish_reason == "length"
    return Reply(_text(getattr(message, "content", None)), cut, prompt, completion, rate_limit)


def _is_whole(pieces: Any) -> bool:
    """Whether the server sent the whole answer at once instead of a stream, like small servers and some proxies."""
    return str(pieces.response.headers.get("content-type", "")).startswith("application/json")


async def _read_whole(pieces: Any) -> Reply:
    from openai.types.chat import ChatCompletion

    try:
        answer = ChatCompletion.construct(**json.loads(await pieces.response.aread()))
    except (ValueError, TypeError):
        raise TransientError("protocol", "the model server's answer is not JSON of the protocol") from None
    return _reply(answer, rate_limit_of(pieces.response.headers))


def _text(content: Any) -> str:
    """Returns a message's text. Some servers send it in several parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return str(content or "")


def _tokens(usage: Any, name: str) -> int:
    """Returns a token count, or 0 if it is invalid."""
    count = getattr(usage, name, None)
    return int(count) if isinstance(count, int | float) and 0 < count < MAX_TOKENS else 0


def text_tokens(texts: Iterable[str]) -> int:
    """Returns the estimated number of tokens of all texts together."""
    return sum(map(len, texts)) // CHARS_PER_TOKEN


def prompt_tokens(prompt: Sequence[ChatMessage]) -> int:
    return text_tokens(message["content"] for message in prompt)


def reply_tokens(prompt: Sequence[ChatMessage], reply: Reply) -> tuple[int, int]:
    """Returns the prompt tokens and completion tokens of a reply: the server's counts, or else estimates."""
    return reply.prompt_tokens or prompt_tokens(prompt), reply.completion_tokens or text_tokens([reply.text])


@dataclass(slots=True)
class AnswerLengths:
    """Limits learnt from one server's refusals. A prompt's length is its number of characters."""

    _refused: dict[int, int] = field(default_factory=dict)
    """Maps a number of answer tokens to the length of the shortest prompt that was refused with this number."""

    def tokens_to_ask(self, prompt_chars: int, wanted_tokens: int) -> int:
        """Returns the number of answer tokens to request if the caller wants `wanted_tokens`."""
        refused = self._refused.get(wanted_tokens)
        return wanted_tokens if refused is None or prompt_chars < refused else min(wanted_tokens, REDUCED_MAX_TOKENS)

    def reduce(self, prompt_chars: int, wanted_tokens: int, asked_tokens: int) -> bool:
        """Records that a request for `asked_tokens` answer tokens was refused as too long. Whether to repeat it with fewer
        answer tokens."""
        if asked_tokens <= REDUCED_MAX_TOKENS:
            return False
        self._refused[wanted_tokens] = min(prompt_chars, self._refused.get(wanted_tokens, prompt_chars))
        return True
