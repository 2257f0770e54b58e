"""OpenIE by vLLM's offline batch inference in this process, for the first indexing of a large drive on a machine with a GPU.

Uses prompts, schemas, pieces and the parsing of answers from `memory.openie.llm.extractor`, in two passes over a batch of
passages.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.llm.chat_completion import DEFAULT_MAX_TOKENS
from memory.llm.client import ChatMessage
from memory.llm.errors import BadAnswer
from memory.llm.json_answers import parse
from memory.llm.repetition import ends_in_repetition
from memory.llm.response_format import JsonSchema
from memory.llm.retry import BAD_ANSWER_RETRIES
from memory.openie.llm.extractor import (
    MAX_PASSAGE_ENTITIES,
    build_extraction,
    extractor_name,
    halve_passage,
    is_endless,
    names_within,
    parse_entities,
    parse_triples,
    split_passage,
)
from memory.openie.llm.prompts import ENTITIES_SCHEMA, TRIPLES_SCHEMA, entity_messages, triple_messages
from memory.openie.registry import CountDropped, ReportUnread
from store.types import Extraction, PassageText


@dataclass(frozen=True, slots=True)
class _Part:
    """A passage, or a piece of a passage. `place`: (index of the passage in the batch, index of the piece in the passage)."""

    place: tuple[int, ...]
    text: PassageText
    depth: int = 0
    tries: int = 0

    @property
    def passage(self) -> int:
        return self.place[0]


class VLLMExtractor:
    """Occupies the GPU with the model as long as it exists. Only one thread may use it at a time."""

    def __init__(self, model: str, temperature: float, count_dropped: CountDropped = lambda _why, _count: None) -> None:
        """Loads the model, which takes minutes. Raises ImportError if vLLM is not installed, and all errors of vLLM."""
        from vllm import LLM

        self.name = extractor_name(model)
        self._temperature = temperature
        self._count_dropped = count_dropped
        self._llm = LLM(model=model, enable_prefix_caching=True)

    def extract(self, passages: Sequence[PassageText], unread: ReportUnread | None = None) -> list[Extraction]:
        """Returns one extraction per passage, in order. A passage whose answers were all unusable is reported to `unread`
        instead.

        If `unread` is None, such a passage gets an empty extraction; otherwise it would be requested again forever.
        """
        began = time.perf_counter()
        batch = _Batch(len(passages))
        parts = [
            _Part((at, number), piece)
            for at, passage in enumerate(passages)
            for number, piece in enumerate(split_passage(passage) or [passage])
        ]
        found = self._read(parts, ENTITIES_SCHEMA, lambda part: entity_messages(part.text), parse_entities, batch)
        names = [tuple(dict.fromkeys(each))[:MAX_PASSAGE_ENTITIES] for each in found]
        parts = [part for part in parts if part.passage not in batch.failed]
        triples = self._read(
            parts,
            TRIPLES_SCHEMA,
            lambda part: triple_messages(part.text, names_within(part.text, names[part.passage])),
            parse_triples,
            batch,
        )
        took_ms = (time.perf_counter() - began) * 1000 / max(len(passages), 1)
        out = []
        for at, passage in enumerate(passages):
            if at in batch.failed and unread is not None:
                unread(passage.id, batch.failed[at])
                continue
            items = triples[at] if at not in batch.failed else []
            spent = batch.prompt[at], batch.completion[at]
            out.append(build_extraction(passage, self.name, names[at], items, self._count_dropped, *spent, took_ms))
        return out

    def _read(
        self,
        parts: Sequence[_Part],
        schema: JsonSchema,
        messages: Callable[[_Part], list[ChatMessage]],
        read: Callable[[Any], list[Any]],
        batch: "_Batch",
    ) -> list[list[Any]]:
        """Returns the items in the model's answers for each passage, in the order of its parts. Unusable answers are requested
        again."""
        items: dict[tuple[int, ...], list[Any]] = {}
        while parts:
            again: list[_Part] = []
            for part, answer in zip(parts, self._chat([messages(part) for part in parts], schema), strict=True):
                batch.spend(part.passage, answer)
                value, useless = _value(answer.text, read)
                # A truncated list of names is long enough, but a truncated list of triples lacks triples.
                endless = ends_in_repetition(answer.text) if useless else is_endless(value, part.text)
                again_halved = answer.cut and not endless and (useless or schema is TRIPLES_SCHEMA)
                divided = _divided(part) if again_halved else []
                if divided:
                    again += divided
                elif useless is None:
                    # The last item may be incomplete.
                    items[part.place] = value[:-1] if answer.cut else value
                elif part.tries < BAD_ANSWER_RETRIES and not answer.cut:
                    again.append(replace(part, tries=part.tries + 1))
                else:
                    batch.failed.setdefault(part.passage, useless)
            parts = [part for part in again if part.passage not in batch.failed]
        out: list[list[Any]] = [[] for _ in batch.prompt]
        for place in sorted(items):
            out[place[0]] += items[place]
        return out

    def _chat(self, conversations: list[list[ChatMessage]], schema: JsonSchema) -> list["_Answer"]:
        from vllm import SamplingParams

        options: dict[str, Any] = {"temperature": self._temperature, "max_tokens": DEFAULT_MAX_TOKENS}
        answers = self._llm.chat(conversations, SamplingParams(**options, **_guided(schema)), use_tqdm=False)
        return [_Answer(answer) for answer in answers]


class _Batch:
    """The tokens that each passage of a batch cost, and the reasons why some passages cannot be read."""

    def __init__(self, passages: int) -> None:
        self.prompt = [0] * passages
        self.completion = [0] * passages
        self.failed: dict[int, str] = {}

    def spend(self, passage: int, answer: "_Answer") -> None:
        self.prompt[passage] += answer.prompt_tokens
        self.completion[passage] += answer.completion_tokens


class _Answer:
    """The parts of vLLM's answer to one conversation that hippod uses. `cut`: the answer reached its length limit."""

    def __init__(self, answer: Any) -> None:
        self.text: str = answer.outputs[0].text
        self.cut = answer.outputs[0].finish_reason == "length"
        self.prompt_tokens = len(answer.prompt_token_ids or ())
        self.completion_tokens = len(answer.outputs[0].token_ids)


def _value(text: str, read: Callable[[Any], list[Any]]) -> tuple[list[Any], str | None]:
    """Returns the items of an answer, and the reason why it is unusable (None: usable)."""
    try:
        return read(parse(text).value), None
    except BadAnswer as error:
        return [], str(error)


def _divided(part: _Part) -> list[_Part]:
    """Returns the two halves of a part; [] if it cannot be divided."""
    halves = enumerate(halve_passage(part.text, part.depth))
    return [_Part((*part.place, at), half, part.depth + 1) for at, half in halves]


def _guided(schema: JsonSchema) -> dict[str, Any]:
    """Returns the options that restrict decoding to the schema; their names depend on vLLM's version."""
    from vllm import sampling_params

    if hasattr(sampling_params, "StructuredOutputsParams"):
        return {"structured_outputs": sampling_params.StructuredOutputsParams(json=dict(schema.schema))}
    return {"guided_decoding": sampling_params.GuidedDecodingParams(json=dict(schema.schema))}
