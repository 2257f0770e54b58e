"""Ways to ask a model for the entities and triples of passages, which `python -m bench fewer_calls` compares.

Each way is a generator: it yields its calls, is sent the JSON of each answer, and returns the extraction of each passage.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any

from memory.llm.client import ChatMessage
from memory.llm.errors import BadAnswer
from memory.llm.json_answers import get_field
from memory.llm.messages import example_answer, quoted, system_message, user_message
from memory.llm.response_format import JSON_TEXT, JsonSchema, json_array, json_object
from memory.openie.llm import prompts
from memory.openie.llm.extractor import parse_entities, parse_triples
from memory.openie.llm.prompts import ENTITIES_SCHEMA, TRIPLES_SCHEMA, entity_messages, triple_messages
from store.types import PassageText

PASSAGES_A_CALL = 4
NAMES, TRIPLES = "named_entities", "triples"


@dataclass(frozen=True)
class Call:
    """One call of the model. `fields`: names of the lists that the answer has for each passage."""

    messages: list[ChatMessage]
    schema: JsonSchema
    fields: tuple[str, ...]
    passages: Sequence[PassageText]

    @property
    def is_for_several(self) -> bool:
        return "passages" in self.schema.schema["properties"]


@dataclass(frozen=True)
class Extracted:
    """The model's unchecked answers about one passage."""

    passage: PassageText
    names: list[str]
    triples: list[Any]


Way = Callable[[Sequence[PassageText]], Generator[Call, object, list[Extracted]]]


def two_calls(passages: Sequence[PassageText]) -> Generator[Call, object, list[Extracted]]:
    """hippod's way: both calls for a passage, then the next passage."""
    found = []
    for passage in passages:
        names = _names((yield Call(entity_messages(passage), ENTITIES_SCHEMA, (NAMES,), [passage])))
        said = yield Call(triple_messages(passage, names), TRIPLES_SCHEMA, (TRIPLES,), [passage])
        found.append(Extracted(passage, names, _triples(said)))
    return found


def equal_calls_together(passages: Sequence[PassageText]) -> Generator[Call, object, list[Extracted]]:
    """hippod's two calls: the first call for all passages, then the second call for all passages."""
    names: list[list[str]] = []
    for passage in passages:
        said = yield Call(entity_messages(passage), ENTITIES_SCHEMA, (NAMES,), [passage])
        names.append(_names(said))
    found = []
    for passage, known in zip(passages, names, strict=True):
        said = yield Call(triple_messages(passage, known), TRIPLES_SCHEMA, (TRIPLES,), [passage])
        found.append(Extracted(passage, known, _triples(said)))
    return found


def passage_before_task(passages: Sequence[PassageText]) -> Generator[Call, object, list[Extracted]]:
    """Two calls whose prompts are equal up to the end of the passage; the task comes after the passage."""
    found = []
    for passage in passages:
        names = _names((yield Call(_shared_prompt(passage, _LIST), ENTITIES_SCHEMA, (NAMES,), [passage])))
        asked = _shared_prompt(passage, _state(names))
        said = yield Call(asked, TRIPLES_SCHEMA, (TRIPLES,), [passage])
        found.append(Extracted(passage, names, _triples(said)))
    return found


def one_call(passages: Sequence[PassageText]) -> Generator[Call, object, list[Extracted]]:
    """Entities and triples of a passage in one call."""
    found = []
    for passage in passages:
        asked = [
            system_message(f"{prompts._ENTITIES_TASK}{_THEN}{prompts._MATERIAL} {_FORM_OF_BOTH}"),
            user_message(quoted("passage", prompts._EXAMPLE.full)),
            example_answer(_json({NAMES: prompts._EXAMPLE_ENTITIES, TRIPLES: prompts._EXAMPLE_TRIPLES})),
            user_message(quoted("passage", passage.full)),
        ]
        said = yield Call(asked, _BOTH_SCHEMA, (NAMES, TRIPLES), [passage])
        found.append(Extracted(passage, _names(said), _triples(said)))
    return found


def several_passages(passages: Sequence[PassageText]) -> Generator[Call, object, list[Extracted]]:
    """Two calls for all passages together."""
    asked = _several(prompts._ENTITIES_TASK, NAMES, [(each, None) for each in passages])
    said = yield Call(asked, _SEVERAL_NAMES, (NAMES,), passages)
    names = [_names(each) for each in _parts(said, len(passages))]
    asked_about = list(zip(passages, names, strict=True))
    asked = _several(prompts._TRIPLES_TASK, TRIPLES, asked_about)
    said = yield Call(asked, _SEVERAL_TRIPLES, (TRIPLES,), passages)
    parts = _parts(said, len(passages))
    return [Extracted(*each, _triples(part)) for each, part in zip(asked_about, parts, strict=True)]


WAYS: dict[str, Way] = {
    "two calls (hippod)": two_calls,
    f"two calls, the first for {PASSAGES_A_CALL} passages before the second": equal_calls_together,
    "two calls, passage before task": passage_before_task,
    "one call": one_call,
    f"two calls for {PASSAGES_A_CALL} passages": several_passages,
}

_LIST = "List the named entities."
_THEN = "Then turn the passage into a knowledge graph. " + prompts._TRIPLES_TASK.partition(". ")[2].replace(
    "that are listed after the passage", "that you have listed"
)
_FORM_OF_BOTH = (
    "Answer with one JSON object and nothing else: "
    '{"named_entities": ["…", …], "triples": [["subject", "predicate", "object"], …]}.'
)
_SEVERAL_PASSAGES = (
    "There are several passages, with numbers. Treat each by itself, and answer with one JSON object and nothing else, with an "
    "entry for each passage in their order: "
)
_SECOND_EXAMPLE = PassageText("", "Tolm", "Tolm is a harbour on the south coast of Orrey. It was opened in 1874.")
_SECOND_ENTITIES = ("Tolm", "Orrey", "1874")
_SECOND_TRIPLES = (
    ("Tolm", "is a", "harbour"),
    ("Tolm", "is on", "south coast of Orrey"),
    ("Tolm", "was opened in", "1874"),
)
_NAMES_LIST = ENTITIES_SCHEMA.schema["properties"][NAMES]
_TRIPLES_LIST = TRIPLES_SCHEMA.schema["properties"][TRIPLES]
_BOTH_SCHEMA = JsonSchema("named_entities_and_triples", json_object(named_entities=_NAMES_LIST, triples=_TRIPLES_LIST))


def _of_several(name: str, listed: dict[str, Any]) -> JsonSchema:
    item = json_object(number=JSON_TEXT, **{name: listed})
    return JsonSchema(f"{name}_of_passages", json_object(passages=json_array(item)))


_SEVERAL_NAMES, _SEVERAL_TRIPLES = _of_several(NAMES, _NAMES_LIST), _of_several(TRIPLES, _TRIPLES_LIST)


def _shared_prompt(passage: PassageText, task: str) -> list[ChatMessage]:
    def request_about(text: PassageText, last: str) -> ChatMessage:
        return user_message(f"{quoted('passage', text.full)}\n\n{last}")

    return [
        system_message(
            "There are two tasks; the one that you are asked for follows the passage. First task: "
            f"{prompts._ENTITIES_TASK}Second task: {prompts._TRIPLES_TASK}{prompts._MATERIAL} Answer with one JSON object and "
            'nothing else: {"named_entities": ["…", …]} or {"triples": [["subject", "predicate", "object"], …]}.'
        ),
        request_about(prompts._EXAMPLE, _LIST),
        example_answer(_json({NAMES: prompts._EXAMPLE_ENTITIES})),
        request_about(prompts._EXAMPLE, _state(prompts._EXAMPLE_ENTITIES)),
        example_answer(_json({TRIPLES: prompts._EXAMPLE_TRIPLES})),
        request_about(passage, task),
    ]


def _state(names: Sequence[str]) -> str:
    return f"Named entities: {_json(list(names))}. State the triples."


def _several(task: str, name: str, passages: Sequence[tuple[PassageText, list[str] | None]]) -> list[ChatMessage]:
    is_triples = name == TRIPLES
    examples = [
        (prompts._EXAMPLE, list(prompts._EXAMPLE_ENTITIES) if is_triples else None),
        (_SECOND_EXAMPLE, list(_SECOND_ENTITIES) if is_triples else None),
    ]
    lists = (prompts._EXAMPLE_TRIPLES, _SECOND_TRIPLES) if is_triples else (prompts._EXAMPLE_ENTITIES, _SECOND_ENTITIES)
    answered = [{"number": str(at), name: listed} for at, listed in enumerate(lists, 1)]
    form = '["subject", "predicate", "object"]' if is_triples else '"…"'
    shown = f'{{"passages": [{{"number": "1", "{name}": [{form}, …]}}, …]}}.'
    return [
        system_message(f"{task}{prompts._MATERIAL} {_SEVERAL_PASSAGES}{shown}"),
        user_message(_numbered(examples)),
        example_answer(_json({"passages": answered})),
        user_message(_numbered(passages)),
    ]


def _numbered(passages: Sequence[tuple[PassageText, list[str] | None]]) -> str:
    return "\n\n".join(
        quoted("passage", passage.full, at) + (f"\nNamed entities: {_json(names)}" if names is not None else "")
        for at, (passage, names) in enumerate(passages, 1)
    )


def _names(said: object) -> list[str]:
    try:
        return parse_entities(said)
    except BadAnswer:
        return []


def _triples(said: object) -> list[Any]:
    try:
        return parse_triples(said)
    except BadAnswer:
        return []


def _parts(said: object, count: int) -> list[object]:
    """Returns the entry of each passage; {} if the answer lacks it."""
    try:
        parts = get_field(said, "passages")
    except BadAnswer:
        parts = []
    return [*(parts if isinstance(parts, list) else []), *[{}] * count][:count]


def _json(value: object) -> str:
    return dumps(value, ensure_ascii=False)
