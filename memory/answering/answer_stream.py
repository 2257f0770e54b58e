"""Streams the model's answer; used for every kind of question."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from memory.answering import qa_reader
from memory.answering.answer_form import DEFAULT_FORM, AnswerForm, answer_schema
from memory.llm.client import ChatMessage, ModelClient, Reply
from memory.llm.errors import BadAnswer, ModelError
from memory.llm.repetition import without_repetition
from memory.llm.token_estimates import reply_tokens

SHOWN_CHARS = 24
"""Number of characters by which the reply must grow before the answer is shown again."""


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """A streamed answer. `answer` is None if the call failed with `error`. Tokens count the text written so far."""

    reply: Reply
    prompt_tokens: int
    completion_tokens: int
    answer: qa_reader.Answer | None = None
    error: ModelError | TimeoutError | None = None


async def stream_answer(
    client: ModelClient,
    prompt: Sequence[ChatMessage],
    passages: int,
    limit_s: float,
    on_text: Callable[[str], None],
    form: AnswerForm = DEFAULT_FORM,
) -> StreamedAnswer:
    """Asks once for the answer from `passages` numbered passages, for at most `limit_s` seconds.

    Calls `on_text` with the text so far each time it has grown. Does not raise for failures of the model.
    """
    reply, parsed_chars, shown = Reply(""), 0, ""
    answer: qa_reader.Answer | None = None
    failure: ModelError | TimeoutError | None = None
    try:
        async with (
            asyncio.timeout(limit_s),
            aclosing(client.stream("answer", prompt, answer_schema(form), form.max_tokens)) as replies,
        ):
            async for reply in replies:
                if len(reply.text) < parsed_chars + SHOWN_CHARS:
                    continue
                parsed_chars = len(reply.text)
                text = qa_reader.partial_answer(reply.text, passages, form)
                if len(text) > len(shown):
                    shown = text
                    on_text(shown)
        written = without_repetition(reply.text) if reply.cut else reply.text
        answer = qa_reader.read_answer(written, passages, reply.cut, form)
        if answer.text != shown:
            on_text(answer.text)
    except BadAnswer as error:
        client.count_call("answer", error.kind)
        failure = error
    except ModelError as error:
        failure = error
    except TimeoutError as error:
        client.count_call("answer", "timeout")
        failure = error
    tokens = reply_tokens(prompt, reply) if reply.text else (0, 0)
    return StreamedAnswer(reply, *tokens, answer, failure)
