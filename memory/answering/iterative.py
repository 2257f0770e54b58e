"""Iterative retrieval: retrieval and a model's thought alternate until a thought answers (IRCoT, arXiv 2212.10509).

HippoRAG 1 combines IRCoT with its graph (section 4.2): the graph finds passages, a thought states facts from them, and the next
query asks about these facts. `memory.answering.qa_reader` writes the answer from the merged passages.

Passages of all steps are merged by their best score. Scores are divided by the best score of their query, because scores of
different queries have no common scale.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from memory.answering import qa_reader
from memory.answering.answer_form import DEFAULT_FORM, STRANGERS, AnswerForm
from memory.answering.budget import Budget, Spending
from memory.answering.qa_reader import quote_passage, without_markers
from memory.llm.chat_completion import reply_tokens
from memory.llm.client import ChatMessage, ModelClient
from memory.llm.errors import BadAnswer, ModelError
from memory.llm.json_answers import get_field, replace_surrogates, whole_number
from memory.llm.messages import system_message, user_message, without_quote_marks
from memory.llm.prompt_texts import prompt_text
from memory.llm.response_format import JSON_BOOLEAN, JSON_INTEGER, JSON_TEXT, JsonSchema, json_array, json_object
from memory.types import Hit

THOUGHT_TOKENS = 512
IterativeStopReason = Literal["answered", "steps", "nothing new", "calls", "tokens", "seconds", "model"]
"""Reason for the end of the steps: a thought answers; all steps were made; a thought repeats an earlier query; one of three
limits was reached; a model call failed."""
THOUGHT_CHARS = 2_000
"""Maximum number of characters of a thought; the rest is cut off. The thought becomes the next query, and encoders use only a
few hundred words."""
THOUGHT_SCHEMA = JsonSchema(
    "thought", json_object(thought=JSON_TEXT, sources=json_array(JSON_INTEGER), answers=JSON_BOOLEAN)
)
_TASK = (
    "You work towards the answer of a question one thought at a time; between two thoughts a search brings further passages, "
    "and your thought is what is searched with. Write the next thought: one sentence that states what the passages say "
    "towards the answer, with the full names of the people, places and things that lead on, and what is still to be found "
    'out about them. Repeat no earlier thought. "sources" are the numbers of the passages that the thought rests on. Set '
    '"answers" to true only when your thought states the answer to the question and the passages bear it out. '
)
_FORM = (
    f'{STRANGERS}Answer with one JSON object and nothing else: {{"thought": "…", "sources": [1], "answers": false}}.'
)


@dataclass(frozen=True, slots=True)
class Thought:
    """One sentence towards the answer, and the ids of the passages that support it."""

    text: str
    answers: bool
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The hits of one query, best first.

    `calls` and the tokens are the cost of the query's model calls. `remembered` contains (prompt tokens, completion tokens) of
    each cached reply, paid for by an earlier equal query.
    """

    hits: tuple[Hit, ...]
    note: str | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    remembered: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class IterativeStep:
    """One step: the query, its hits, all hits so far (at most k, best first), and the thought about them.

    Scores in `found` and `passages` are divided by the best score of their query. `reply` is the model's answer; "" without a
    model call. The last step may have no `thought`; if the model failed, `error` gives the reason.
    """

    number: int
    query: str
    found: tuple[Hit, ...]
    new: tuple[str, ...]
    """Ids of the hits that no earlier step found."""
    passages: tuple[Hit, ...]
    thought: Thought | None = None
    note: str | None = None
    reply: str = ""
    error: str | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    deeper: tuple[Hit, ...] = ()
    """Hits of the query after the first k, if requested. They are used neither for the thought nor for the answer."""


@dataclass(frozen=True, slots=True)
class IterativeResult:
    """The answer is written from `passages`."""

    question: str
    steps: tuple[IterativeStep, ...]
    stopped: IterativeStopReason
    error: str | None = None

    @property
    def passages(self) -> tuple[Hit, ...]:
        return self.steps[-1].passages if self.steps else ()

    @property
    def thoughts(self) -> tuple[Thought, ...]:
        return tuple(step.thought for step in self.steps if step.thought is not None)


def scale_scores(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Divides the scores by the best score. If no score is above 0, all become 1."""
    best = max((hit.score for hit in hits), default=0.0)
    return tuple(replace(hit, score=max(hit.score, 0.0) / best if best > 0 else 1.0) for hit in hits)


def merge_hits(before: Sequence[Hit], found: Sequence[Hit], k: int) -> tuple[Hit, ...]:
    """Returns the `k` best hits, each passage once with its best score; among equal scores, hits of `before` come first."""
    best: dict[str, tuple[float, int, Hit]] = {}
    for order, hit in enumerate([*before, *found]):
        known = best.get(hit.id)
        if known is None:
            best[hit.id] = (hit.score, order, hit)
        elif hit.score > known[0]:
            best[hit.id] = (hit.score, known[1], hit)
    ranked = sorted(best.values(), key=lambda each: (-each[0], each[1]))
    return tuple(hit for _, _, hit in ranked[:k])


def retrieved_step(steps: Sequence[IterativeStep], query: str, found: RetrievalResult, k: int) -> IterativeStep:
    """Returns the next step, without its thought."""
    hits = scale_scores(found.hits)
    known = {hit.id for step in steps for hit in step.found}
    return IterativeStep(
        number=len(steps) + 1,
        query=query,
        found=hits[:k],
        new=tuple(hit.id for hit in hits[:k] if hit.id not in known),
        passages=merge_hits([hit for step in steps for hit in step.found], hits[:k], k),
        deeper=hits[k:],
        note=found.note,
        calls=found.calls,
        prompt_tokens=found.prompt_tokens,
        completion_tokens=found.completion_tokens,
    )


def thought_prompt(question: str, passages: Sequence[Hit], thoughts: Sequence[Thought]) -> list[ChatMessage]:
    """Returns the prompt with the question, the passages numbered from 1, and the thoughts so far."""
    material = "\n\n".join(quote_passage(number, hit.title, hit.text) for number, hit in enumerate(passages, 1))
    earlier = "\n".join(f"{number}. {thought.text}" for number, thought in enumerate(thoughts, 1))
    request = without_quote_marks(f"Question: {question}\nThoughts so far:\n{earlier or 'none'}")
    return [
        system_message(prompt_text("thought", _TASK) + _FORM),
        user_message(f"{material or 'There are no passages.'}\n\n{request}"),
    ]


def read_thought(value: object, passages: Sequence[Hit]) -> Thought:
    """Returns the thought in the model's JSON, without sources that the prompt did not contain. Raises BadAnswer if there is no
    thought."""
    sentence = get_field(value, "thought")
    if not isinstance(sentence, str) or not (
        text := replace_surrogates(without_markers(sentence)).strip()[:THOUGHT_CHARS]
    ):
        raise BadAnswer("wrong schema", 'the model\'s "thought" is not a sentence')
    whole = value if isinstance(value, dict) else {}
    given = whole.get("sources")
    numbers = [whole_number(each) for each in (given if isinstance(given, list) else [given])]
    sources = dict.fromkeys(passages[n - 1].id for n in numbers if n is not None and 1 <= n <= len(passages))
    return Thought(" ".join(text.split()), whole.get("answers") is True, tuple(sources))


def answer_prompt(question: str, passages: Sequence[Hit], form: AnswerForm = DEFAULT_FORM) -> list[ChatMessage]:
    return qa_reader.reader_prompt(question, [(hit.title, hit.text) for hit in passages], form)


def next_query(step: IterativeStep, question: str, steps: Sequence[IterativeStep]) -> str | IterativeStopReason:
    """Returns the query that follows from the step's thought, or the reason to stop. `steps` are the earlier steps."""
    assert step.thought is not None
    if step.thought.answers:
        return "answered"
    earlier = {question, *(each.query for each in [*steps, step])}
    return "nothing new" if step.thought.text in earlier else step.thought.text


async def iterate(
    question: str,
    retrieve: Callable[[str], Awaitable[RetrievalResult]],
    client: ModelClient,
    steps: int,
    k: int,
    spending: Spending,
    on_step: Callable[[IterativeStep], None] = lambda _step: None,
) -> IterativeResult:
    """Runs at most `steps` retrievals, with a thought after every retrieval except the last.

    Stops early when a thought answers, a thought repeats an earlier query, or a limit of the budget is reached. `retrieve`
    itself must skip recognition memory if only the answer's call is left. If the model fails, or if `retrieve` raises
    ModelError after the first step, the steps end and the answer is made from the passages found so far. `on_step` receives
    each step after its retrieval, and again after its thought. Raises all errors of `retrieve`, except a ModelError after its
    first call.
    """
    steps_made: list[IterativeStep] = []
    query = question
    while True:
        began = time.perf_counter()
        try:
            found = await retrieve(query)
        except ModelError as error:
            if not steps_made:
                raise
            return IterativeResult(question, tuple(steps_made), "model", str(error))
        spending.charge(found.calls, found.prompt_tokens, found.completion_tokens)
        step = retrieved_step(steps_made, query, found, k)
        on_step(step)
        if step.number >= steps:
            return _result_with(question, steps_made, step, began, "steps")
        messages = thought_prompt(
            question, step.passages, [each.thought for each in steps_made if each.thought is not None]
        )
        fits = spending.has_tokens_for(messages, answer_prompt(question, step.passages[:1]))
        if (limit := spending.reached() or (None if fits else "tokens")) is not None:
            return _result_with(question, steps_made, step, began, limit)
        try:
            step = await _with_thought(step, messages, client, spending)
        except TimeoutError:
            return _result_with(question, steps_made, _charged(step, spending, 0, 0), began, "seconds")
        except ModelError as error:
            step = _charged(step, spending, error.prompt_tokens, error.completion_tokens)
            return _result_with(question, steps_made, replace(step, error=str(error)), began, "model")
        on_step(step)
        then = next_query(step, question, steps_made)
        if then in ("answered", "nothing new"):
            return _result_with(question, steps_made, step, began, then)
        steps_made.append(replace(step, seconds=time.perf_counter() - began))
        if (limit := spending.reached(0)) is not None:
            return IterativeResult(question, tuple(steps_made), limit)
        query = then


def _result_with(
    question: str, steps_made: Sequence[IterativeStep], last: IterativeStep, began: float, why: Any
) -> IterativeResult:
    steps = (*steps_made, replace(last, seconds=time.perf_counter() - began))
    return IterativeResult(question, steps, why, last.error)


async def _with_thought(
    step: IterativeStep, messages: Sequence[ChatMessage], client: ModelClient, spending: Spending
) -> IterativeStep:
    """Calls the model once, without a retry. Raises ModelError or TimeoutError."""

    def read(value: object) -> tuple[Thought, str]:
        return read_thought(value, step.passages), replace_surrogates(json.dumps(value, ensure_ascii=False))

    async with asyncio.timeout(spending.seconds_left(final=False)):
        (thought, text), reply = await client.ask(
            "thought", messages, THOUGHT_SCHEMA, read, retries=0, max_tokens=THOUGHT_TOKENS
        )
    return replace(_charged(step, spending, *reply_tokens(messages, reply)), thought=thought, reply=text)


def _charged(step: IterativeStep, spending: Spending, prompt_tokens: int, completion_tokens: int) -> IterativeStep:
    """Counts one more call in the step and in `spending`, and returns the step."""
    spending.charge(1, prompt_tokens, completion_tokens)
    return replace(
        step,
        calls=step.calls + 1,
        prompt_tokens=step.prompt_tokens + prompt_tokens,
        completion_tokens=step.completion_tokens + completion_tokens,
    )


def passage_titles(passages: Sequence[Hit]) -> str:
    """Returns the titles of the passages, numbered as [n]."""
    return "; ".join(f"{hit.title or hit.id} [{at}]" for at, hit in enumerate(passages, 1))


def answer_from_thoughts(result: IterativeResult) -> tuple[str, tuple[Hit, ...]]:
    """Returns the thoughts as an answer, each followed by its passages as [n], and the cited passages in the order of n.

    Without thoughts, the answer is "".
    """
    known = {hit.id: hit for step in result.steps for hit in step.found}
    cited: dict[str, int] = {}
    sentences = []
    for thought in result.thoughts:
        numbers = sorted(cited.setdefault(id, len(cited) + 1) for id in thought.sources if id in known)
        sentences.append(thought.text + "".join(f" [{n}]" for n in numbers))
    return " ".join(sentences), tuple(known[id] for id in cited)


def end_note(result: IterativeResult, budget: Budget) -> str | None:
    """Returns a sentence for the user if a limit or a failure ended the steps, otherwise None."""
    steps = len(result.steps)
    after = f"after {steps} {'step' if steps == 1 else 'steps'}"
    match result.stopped:
        case "calls":
            return f"ended {after}: no more than {budget.calls:,} calls to the model were allowed"
        case "tokens":
            return f"ended {after}: no more than {budget.tokens:,} tokens were allowed"
        case "seconds":
            return f"ended {after}: no more than {budget.seconds:g} s were allowed"
        case "model":
            return f"ended {after}: {result.error}"
    return None
