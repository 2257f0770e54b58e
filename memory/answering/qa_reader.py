"""The reader: prompts for an answer from the retrieved passages, streams it, and parses it with verified citations.

The model writes sentences, each with the numbers of the passages that support it. Numbers of passages that the prompt did not
contain are removed from the lists and from the text.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from memory.answering.answer_form import DEFAULT_FORM, VERDICTS, AnswerForm, answer_schema, answer_task
from memory.llm.chat_completion import reply_tokens
from memory.llm.client import ChatMessage, ModelClient, Reply
from memory.llm.errors import BadAnswer, ModelError
from memory.llm.json_answers import get_field, parse, parse_partial, replace_surrogates, whole_number
from memory.llm.messages import quoted, system_message, user_message, without_quote_marks
from memory.llm.repetition import without_repetition

MAX_QUOTED_PASSAGE_CHARS = 6_000
NOT_IN_MEMORY = "The memory does not hold the answer."
NOT_KNOWN = "The model does not know the answer."
NO_ANSWER_WRITTEN = "No answer was written."
_MARKER = re.compile(r"(?<! ) *\[[\d¹²³⁰⁴-⁹ ,;\-–^]+\]")

SHOWN_CHARS = 24
"""Minimum growth of the reply in characters after which hippod shows the answer again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` contains citations as [n]; `cited` contains the numbers n in ascending order, each of a passage in the prompt.

    `short` is the bare answer, or "true" or "false" for a claim; "" if `found` is false (the model abstained). `reasoning` is
    the text that the model wrote before the answer; "" if it was not requested.
    """

    text: str
    cited: tuple[int, ...]
    short: str
    found: bool
    reasoning: str = ""


def reader_prompt(
    question: str, passages: Sequence[tuple[str, str]], form: AnswerForm = DEFAULT_FORM
) -> list[ChatMessage]:
    """Returns the prompt with the question and its passages (pairs of title and text), numbered from 1."""
    material = "\n\n".join(quote_passage(number, title, text) for number, (title, text) in enumerate(passages, 1))
    request = f"{'Claim' if form.verify else 'Question'}: {without_quote_marks(question)}"
    if not form.closed_book:
        request = f"{material or 'There are no passages.'}\n\n{request}"
    return [system_message(answer_task(form)), user_message(request)]


def quote_passage(
    number: int, title: str, text: str, name: str = "passage", max_chars: int = MAX_QUOTED_PASSAGE_CHARS
) -> str:
    """Returns a passage as quoted material: its title, and its text up to `max_chars` characters."""
    return quoted(name, f"{title}\n{text[:max_chars]}" if title else text[:max_chars], number)


def read_answer(text: str, count: int, cut: bool = False, form: AnswerForm = DEFAULT_FORM) -> Answer:
    """Returns the model's complete answer from `count` passages, verified. Raises BadAnswer.

    `cut`: the reply reached its length limit. Its last sentence may be incomplete, so it is removed unless it is the only
    sentence.
    """
    return answer_from_json(parse(text).value, count, cut, form)


def answer_from_json(value: object, count: int, cut: bool = False, form: AnswerForm = DEFAULT_FORM) -> Answer:
    """Like `read_answer`, for parsed JSON."""
    whole = _without_last_entry(value) if cut and isinstance(value, dict) else value
    answer = _verified_answer(whole, count, NOT_KNOWN if form.closed_book else NOT_IN_MEMORY)
    reasoning = value.get("reasoning") if form.reason and isinstance(value, dict) else None
    if isinstance(reasoning, str):
        answer = replace(answer, reasoning=replace_surrogates(reasoning).strip())
    return replace(answer, short=_verdict(answer.short)) if form.verify else answer


def _verdict(short: str) -> str:
    """Returns "true" or "false"; "" if the text is not a verdict."""
    word = short.strip().rstrip(".").lower()
    return word if word in VERDICTS else ""


def _without_last_entry(value: dict[str, Any]) -> dict[str, Any]:
    last = next(reversed(value), "")
    if last == "short":
        return {**value, "short": ""}
    sentences = value.get("sentences")
    if last == "sentences" and isinstance(sentences, list) and len(sentences) > 1:
        return {**value, "sentences": sentences[:-1]}
    return value


def partial_answer(text: str, count: int, form: AnswerForm = DEFAULT_FORM) -> str:
    """As the answer grows, the text changes only in its last words."""
    value = parse_partial(text)
    try:
        text = _verified_answer(value, count, NOT_KNOWN if form.closed_book else NOT_IN_MEMORY, finished=False).text
    except BadAnswer:
        return ""
    opened = text.rfind("[")
    return text[:opened] if opened > text.rfind("]") else text


def _verified_answer(value: object, count: int, missing: str, finished: bool = True) -> Answer:
    """`missing` is the sentence that begins the answer if `found` is false."""
    sentences = get_field(value, "sentences", "answer")
    if isinstance(sentences, str):
        sentences = [{"text": sentences, "sources": value.get("sources", []) if isinstance(value, dict) else []}]
    if not isinstance(sentences, list):
        raise BadAnswer("wrong schema", 'the model\'s answer has no list of "sentences"')
    written: list[str] = []
    cited: set[int] = set()
    for each in sentences:
        sentence = {"text": each} if isinstance(each, str) else each
        if not isinstance(sentence, dict) or not isinstance(sentence.get("text"), str):
            continue
        numbers = _numbers(sentence.get("sources"), count)
        cited.update(numbers)
        text = without_markers(replace_surrogates(sentence["text"])).strip()
        if text:
            written.append(text + "".join(f" [{n}]" for n in numbers))
    short = value.get("short") if isinstance(value, dict) else None
    found = bool(written) and not (isinstance(value, dict) and value.get("found") is False)
    if finished and not written:
        return Answer(missing, (), "", False)
    text = " ".join(written)
    if written and not found:
        text = text if text.startswith(missing) else f"{missing} {text}"
    return Answer(
        text, tuple(sorted(cited)), replace_surrogates(short) if isinstance(short, str) and found else "", found
    )


def _numbers(sources: object, count: int) -> list[int]:
    """Returns the passage numbers among a sentence's sources, ascending, without numbers of passages that were not shown."""
    numbers = (whole_number(each) for each in (sources if isinstance(sources, list) else [sources]))
    return sorted({at for at in numbers if at is not None and 1 <= at <= count})


def without_markers(text: str) -> str:
    """Returns `text` without numbers in square brackets, which would look like verified citations."""
    return _MARKER.sub("", text)


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """`answer` is None if the call failed with `error`. Tokens of a reply that ended early are included."""

    reply: Reply
    prompt_tokens: int
    completion_tokens: int
    answer: Answer | None = None
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

    Calls `on_text` with the whole text so far each time it has grown. Does not raise for failures of the model.
    """
    reply, parsed_chars, shown = Reply(""), 0, ""
    answer: Answer | None = None
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
                text = partial_answer(reply.text, passages, form)
                if len(text) > len(shown):
                    shown = text
                    on_text(shown)
        written = without_repetition(reply.text) if reply.cut else reply.text
        answer = read_answer(written, passages, reply.cut, form)
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
