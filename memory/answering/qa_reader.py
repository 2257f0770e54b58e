"""The reader: an answer from the passages that were found, with verified citations.

The model writes sentences and gives, for each, the numbers of the passages that it rests on. Numbers of passages that the model
was not shown are taken out, from the lists and from the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.answering.answer_form import DEFAULT_FORM, VERDICTS, AnswerForm, answer_task
from memory.llm.client import ChatMessage
from memory.llm.errors import BadAnswer
from memory.llm.json_answers import get_field, parse, parse_partial, replace_surrogates, whole_number
from memory.llm.messages import quoted, system_message, user_message, without_quote_marks

MAX_QUOTED_PASSAGE_CHARS = 6_000
NOT_IN_MEMORY = "The memory does not hold the answer."
NOT_KNOWN = "The model does not know the answer."
NO_ANSWER_WRITTEN = "No answer was written."


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. `text` has its citations in it as [n]; `cited` are those n, ascending, each the number of a shown passage.

    `short` is the bare answer, "" where the memory does not hold it (`found` is false: the model abstained); of a claim it is
    "true" or "false". `reasoning` is what the model wrote before, "" where it was not asked for.
    """

    text: str
    cited: tuple[int, ...]
    short: str
    found: bool
    reasoning: str = ""


def reader_prompt(
    question: str, passages: Sequence[tuple[str, str]], form: AnswerForm = DEFAULT_FORM
) -> list[ChatMessage]:
    """The question and its passages (title and text each), numbered from 1."""
    material = "\n\n".join(quote_passage(number, title, text) for number, (title, text) in enumerate(passages, 1))
    asked = f"{'Claim' if form.verify else 'Question'}: {without_quote_marks(question)}"
    if not form.closed_book:
        asked = f"{material or 'There are no passages.'}\n\n{asked}"
    return [system_message(answer_task(form)), user_message(asked)]


def quote_passage(
    number: int, title: str, text: str, name: str = "passage", max_chars: int = MAX_QUOTED_PASSAGE_CHARS
) -> str:
    """A passage as quoted material: its title, and its text up to `max_chars` characters."""
    return quoted(name, f"{title}\n{text[:max_chars]}" if title else text[:max_chars], number)


def read_answer(text: str, count: int, cut: bool = False, form: AnswerForm = DEFAULT_FORM) -> Answer:
    """The model's whole answer over `count` passages, verified. Raises BadAnswer.

    `cut` says that the answer ran into its length limit: its last sentence may be half, and is left out unless
    it is the only one.
    """
    return answer_from_json(parse(text).value, count, cut, form)


def answer_from_json(value: Any, count: int, cut: bool = False, form: AnswerForm = DEFAULT_FORM) -> Answer:
    """As `read_answer`, of parsed JSON."""
    whole = _without_last_entry(value) if cut and isinstance(value, dict) else value
    answer = _verified_answer(whole, count, NOT_KNOWN if form.closed_book else NOT_IN_MEMORY)
    reasoning = value.get("reasoning") if form.reason and isinstance(value, dict) else None
    if isinstance(reasoning, str):
        answer = replace(answer, reasoning=replace_surrogates(reasoning).strip())
    return replace(answer, short=_verdict(answer.short)) if form.verify else answer


def _verdict(short: str) -> str:
    """The verdict on a claim; "" for what is none."""
    word = short.strip().rstrip(".").lower()
    return word if word in VERDICTS else ""


def _without_last_entry(value: dict[str, Any]) -> dict[str, Any]:
    """A cut-off answer's object without its last entry."""
    last = next(reversed(value), "")
    if last == "short":
        return {**value, "short": ""}
    sentences = value.get("sentences")
    if last == "sentences" and isinstance(sentences, list) and len(sentences) > 1:
        return {**value, "sentences": sentences[:-1]}
    return value


def partial_answer(text: str, count: int, form: AnswerForm = DEFAULT_FORM) -> str:
    """The text of an unfinished answer. As the answer grows, the text only ever changes in its last words."""
    value = parse_partial(text)
    try:
        text = _verified_answer(value, count, NOT_KNOWN if form.closed_book else NOT_IN_MEMORY, finished=False).text
    except BadAnswer:
        return ""
    opened = text.rfind("[")
    return text[:opened] if opened > text.rfind("]") else text


def _verified_answer(value: Any, count: int, missing: str, finished: bool = True) -> Answer:
    """`missing`: the sentence with which an answer that was not found begins."""
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


def _numbers(sources: Any, count: int) -> list[int]:
    """The passage numbers among a sentence's sources, ascending; numbers of passages that were not shown are left out."""
    numbers = (whole_number(each) for each in (sources if isinstance(sources, list) else [sources]))
    return sorted({at for at in numbers if at is not None and 1 <= at <= count})


def without_markers(text: str) -> str:
    """`text` without numbers in square brackets: they would look like verified citations."""
    out: list[str] = []
    rest = text
    while (start := rest.find("[")) >= 0:
        end = rest.find("]", start)
        inside = rest[start + 1 : end] if end >= 0 else ""
        if inside and all(char.isdigit() or char in " ,;-–^" for char in inside):
            out.append(rest[:start].rstrip(" "))
            rest = rest[end + 1 :]
        else:
            out.append(rest[: start + 1])
            rest = rest[start + 1 :]
    return "".join([*out, rest])
