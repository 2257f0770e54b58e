"""Asks a model for JSON. Failed calls are repeated as in `retry`, in the format that works (`response_format`)."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from typing import TypeVar

from memory.llm.chat_completion import DEFAULT_MAX_TOKENS, Chat, ChatMessage, ModelSettings, Reply, reply_tokens
from memory.llm.error_classification import TransientError
from memory.llm.errors import BadAnswer, ModelDown, ModelError, ModelRefused
from memory.llm.json_answers import parse
from memory.llm.limiter import Limiter
from memory.llm.messages import user_message
from memory.llm.repetition import ends_in_repetition
from memory.llm.response_format import JsonSchema, ServerCapabilities, next_json_mode
from memory.llm.retry import ModelCallRetries

__all__ = ["ChatMessage", "CountCall", "CountTokens", "ModelClient", "ModelSettings", "Reply"]

PARSED_INLINE_CHARS = 2048
"""Maximum number of characters of an answer that is parsed on the event loop. A longer one is parsed in a thread, because
repairing it may take a second."""

CountCall = Callable[[str, str], None]
"""Called with the purpose and the outcome of every try; both are fixed words.

Purposes: "entities", "triples", "filter", "query_entities", "thought", "judge", "subquery", "evolve", "merge", "answer",
"verdict", "probe".
"""
CountTokens = Callable[[str, int, int], None]
"""Called with the purpose, prompt tokens and completion tokens of every answer, even an unusable or incomplete one. Tokens are
the server's counts, or estimates."""
T = TypeVar("T")


class ModelClient:
    """A client for one server and model, used on one event loop."""

    def __init__(
        self,
        settings: ModelSettings,
        count_call: CountCall = lambda _purpose, _outcome: None,
        count_tokens: CountTokens = lambda _purpose, _prompt, _completion: None,
        chat: Chat | None = None,
    ) -> None:
        """`chat` sends the calls; OpenAI's client by default."""
        self.settings = settings
        self.count_call = count_call
        self._count_tokens = count_tokens
        self._capabilities = ServerCapabilities()
        self._chat = chat or Chat(settings, self._capabilities)

    def at_temperature(self, temperature: float | None) -> "ModelClient":
        """Returns a client with another temperature, or this client for None.

        The two clients share the connection; only this client closes it.
        """
        if temperature is None or temperature == self.settings.temperature:
            return self
        other = copy(self)
        other.settings = replace(self.settings, temperature=temperature)
        other._chat = self._chat.at_temperature(temperature)
        return other

    async def close(self) -> None:
        await self._chat.close()

    async def ask(
        self,
        purpose: str,
        messages: Sequence[ChatMessage],
        schema: JsonSchema,
        read: Callable[[object], T],
        limiter: Limiter | None = None,
        retries: int | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        before_try: Callable[[], None] = lambda: None,
    ) -> tuple[T, Reply]:
        """Returns the result of `read` on the JSON answer, and the answer with the tokens of all answered tries.

        After an incomplete answer, even if the server calls it complete, asks once more. A second incomplete answer is used and
        marked as `cut`.

        `read` raises BadAnswer for unusable JSON. `retries` is the number of retries after failures, by default `[llm]
        max_retries`. `before_try` is called before every try that does not follow a 429; it may raise to end the call. Raises
        ModelDown, ModelRefused or BadAnswer, which contain the tokens of the unusable answers.
        """
        tries = ModelCallRetries(self.settings.max_retries if retries is None else retries)
        rate_limited = asked_again = False
        spent = Reply("")
        while True:
            if not rate_limited:
                before_try()
            rate_limited = False
            try:
                failed = tries.failed - tries.unanswered  # an unanswered try says nothing about the format
                reply = await self._limited(purpose, messages, schema, limiter, max_tokens, failed)
                prompt, completion = reply_tokens(messages, reply)
                self._count_tokens(purpose, prompt, completion)
                spent = replace(
                    reply,
                    prompt_tokens=spent.prompt_tokens + prompt,
                    completion_tokens=spent.completion_tokens + completion,
                )
                short = len(reply.text) <= PARSED_INLINE_CHARS
                parsed = parse(reply.text) if short else await asyncio.to_thread(parse, reply.text)
                value = read(parsed.value)
                if parsed.whole or reply.cut:
                    self.count_call(purpose, "cut off" if reply.cut else parsed.how)
                    return value, spent
                self.count_call(purpose, "incomplete")
                if asked_again or tries.limit == 0:
                    return value, replace(spent, cut=True)
                asked_again = True
            except BadAnswer as error:
                self.count_call(purpose, error.kind)
                if reply.cut and not ends_in_repetition(reply.text):  # the caller may then ask for less at a time
                    raise _with_tokens(ModelRefused(str(error), too_long=True), spent) from None
                if not tries.again_after_bad_answer():
                    raise _with_tokens(error, spent) from None
            except TransientError as error:
                self.count_call(purpose, error.outcome)
                rate_limited = error.rate_limited
                if (pause := tries.pause_after(error)) is None:
                    down = ModelDown(str(error), error.loggable, error.unavailable)
                    raise _with_tokens(down, spent) from None
                await asyncio.sleep(pause)
            except ModelRefused as error:
                _with_tokens(error, spent)
                raise

    async def probe(self) -> None:
        """Sends a prompt of a few tokens to test the server. Raises ModelDown if the server does not answer."""
        try:
            await self._chat.complete([user_message("Say OK.")], None, "words", 16)
        except (TransientError, ModelRefused) as error:
            self.count_call("probe", error.outcome if isinstance(error, TransientError) else "refused")
            raise ModelDown(str(error), error.loggable) from None
        self.count_call("probe", "ok")

    async def stream(
        self, purpose: str, messages: Sequence[ChatMessage], schema: JsonSchema, max_tokens: int = DEFAULT_MAX_TOKENS
    ) -> AsyncGenerator[Reply, None]:
        """Yields the answer while the server sends it; each Reply contains the whole text so far.

        Makes one try. Raises ModelDown or ModelRefused.
        """
        json_mode: str | None = self._capabilities.json_mode
        while json_mode is not None:
            began, reply = False, Reply("")
            try:
                try:
                    async with aclosing(self._chat.stream(messages, schema, json_mode, max_tokens)) as replies:
                        async for reply in replies:
                            began = True
                            yield reply
                finally:  # an answer that the client gave up costs too
                    if began:
                        self._count_tokens(purpose, *reply_tokens(messages, reply))
                self._capabilities.mode_worked(json_mode)
                self.count_call(purpose, "ok")
                return
            except ModelRefused as error:
                lower = None if error.too_long or began else next_json_mode(json_mode)
                if lower is None:
                    self.count_call(purpose, "refused")
                    raise
                json_mode = lower
            except TransientError as error:
                self.count_call(purpose, error.outcome)
                raise ModelDown(str(error), error.loggable) from None

    async def _limited(
        self,
        purpose: str,
        messages: Sequence[ChatMessage],
        schema: JsonSchema,
        limiter: Limiter | None,
        max_tokens: int,
        failed_tries: int,
    ) -> Reply:
        if limiter is None:
            return await self._in_any_json_mode(purpose, messages, schema, max_tokens, failed_tries)
        async with limiter.slot() as call:
            try:
                reply = await self._in_any_json_mode(purpose, messages, schema, max_tokens, failed_tries)
            except TransientError as error:
                if error.rate_limited:
                    limiter.refused(call, error.retry_after_s)
                else:
                    limiter.failed(call)
                raise
            limiter.succeeded(reply.rate_limit)
            return reply

    async def _in_any_json_mode(
        self, purpose: str, messages: Sequence[ChatMessage], schema: JsonSchema, max_tokens: int, failed_tries: int
    ) -> Reply:
        json_mode: str | None = self._capabilities.mode_to_ask(failed_tries)
        refused = False
        while True:
            assert json_mode is not None
            try:
                reply = await self._chat.complete(messages, schema, json_mode, max_tokens)
            except ModelRefused as error:
                lower = None if error.too_long else next_json_mode(json_mode)
                if lower is None:
                    self.count_call(purpose, "too long" if error.too_long else "refused")
                    raise
                json_mode, refused = lower, True
                continue
            self._capabilities.mode_worked(json_mode, refused)
            return reply


def _with_tokens(error: ModelError, reply: Reply) -> ModelError:
    """Sets the error's tokens to the tokens of `reply`; returns the error."""
    error.prompt_tokens, error.completion_tokens = reply.prompt_tokens, reply.completion_tokens
    return error
