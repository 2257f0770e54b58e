"""The thought between two retrievals: its prompt and the parser of the model's answer. Pure functions."""

from collections.abc import Sequence

from memory.answering.answer_form import STRANGERS
from memory.answering.iterative.steps import Thought
from memory.answering.qa_reader import quote_passage, without_markers
from memory.llm.client import ChatMessage
from memory.llm.errors import BadAnswer
from memory.llm.json_answers import get_field, replace_surrogates, whole_number
from memory.llm.messages import system_message, user_message, without_quote_marks
from memory.llm.prompt_texts import prompt_text
from memory.llm.response_format import JSON_BOOLEAN, JSON_INTEGER, JSON_TEXT, JsonSchema, json_array, json_object
from memory.types import Hit

THOUGHT_CHARS = 2_000
"""A longer thought is cut, because it becomes the next query and encoders use only a few hundred words."""

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


def thought_prompt(question: str, passages: Sequence[Hit], thoughts: Sequence[Thought]) -> list[ChatMessage]:
    """Returns the prompt with the question, the passages numbered from 1, and the thoughts so far."""
    material = "\n\n".join(quote_passage(number, hit.title, hit.text) for number, hit in enumerate(passages, 1))
    earlier = "\n".join(f"{number}. {thought.text}" for number, thought in enumerate(thoughts, 1))
    asked = without_quote_marks(f"Question: {question}\nThoughts so far:\n{earlier or 'none'}")
    return [
        system_message(prompt_text("thought", _TASK) + _FORM),
        user_message(f"{material or 'There are no passages.'}\n\n{asked}"),
    ]


def read_thought(value: object, passages: Sequence[Hit]) -> Thought:
    """Returns the thought in the model's JSON, without sources that were not shown. Raises BadAnswer."""
    said = get_field(value, "thought")
    if not isinstance(said, str) or not (text := replace_surrogates(without_markers(said)).strip()[:THOUGHT_CHARS]):
        raise BadAnswer("wrong schema", 'the model\'s "thought" is no sentence')
    whole = value if isinstance(value, dict) else {}
    given = whole.get("sources")
    numbers = [whole_number(each) for each in (given if isinstance(given, list) else [given])]
    sources = dict.fromkeys(passages[n - 1].id for n in numbers if n is not None and 1 <= n <= len(passages))
    return Thought(" ".join(text.split()), whole.get("answers") is True, tuple(sources))
