"""OpenIE by vLLM's offline batch inference in this process: for the first load of a large drive, on a machine with a GPU.

The same prompts, schemas and reading of answers as `memory.openie.llm`, in two passes over a batch of passages.
"""

import time
from collections.abc import Sequence
from typing import Any

from memory.llm.answers import parse
from memory.llm.client import MAX_TOKENS, Message
from memory.llm.errors import BadAnswer
from memory.llm.formats import Shape
from memory.openie.llm import MAX_ENTITIES, Dropped, extractor_name, finished, read_entities, read_triples
from memory.openie.llm import PIECE_CHARS as MAX_CHARS
from memory.openie.prompts import ENTITIES, TRIPLES, entity_messages, triple_messages
from store.types import Extraction, PassageText


class VLLMExtractor:
    """Holds the model on the card for as long as it lives. One thread at a time."""

    def __init__(self, model: str, temperature: float, dropped: Dropped = lambda _why, _count: None) -> None:
        """Loads the model: minutes. Raises ImportError where vLLM is not installed, and whatever vLLM raises."""
        from vllm import LLM

        self.name = extractor_name(model)
        self._temperature = temperature
        self._dropped = dropped
        self._llm = LLM(model=model, enable_prefix_caching=True)

    def extract(self, passages: Sequence[PassageText]) -> list[Extraction]:
        """One extraction a passage, in order. What the model answered without use is an extraction without triples."""
        began = time.perf_counter()
        short = [PassageText(p.id, p.title, p.text[:MAX_CHARS]) for p in passages]
        first = self._chat([entity_messages(passage) for passage in short], ENTITIES)
        names = [_entities(answer.text) for answer in first]
        asked = [triple_messages(passage, found) for passage, found in zip(short, names, strict=True)]
        second = self._chat(asked, TRIPLES)
        took_ms = (time.perf_counter() - began) * 1000 / max(len(passages), 1)
        return [
            finished(
                passage.id,
                self.name,
                found,
                _triples(two.text),
                self._dropped,
                one.prompt_tokens + two.prompt_tokens,
                one.completion_tokens + two.completion_tokens,
                took_ms,
            )
            for passage, found, one, two in zip(passages, names, first, second, strict=True)
        ]

    def _chat(self, conversations: list[list[Message]], shape: Shape) -> list["_Answer"]:
        from vllm import SamplingParams

        options: dict[str, Any] = {"temperature": self._temperature, "max_tokens": MAX_TOKENS}
        answers = self._llm.chat(conversations, SamplingParams(**options, **_guided(shape)), use_tqdm=False)
        return [_Answer(answer) for answer in answers]


class _Answer:
    """What is used of vLLM's answer to one conversation."""

    def __init__(self, answer: Any) -> None:
        self.text: str = answer.outputs[0].text
        self.prompt_tokens = len(answer.prompt_token_ids or ())
        self.completion_tokens = len(answer.outputs[0].token_ids)


def _guided(shape: Shape) -> dict[str, Any]:
    """Decoding held to the schema, as this version of vLLM names it."""
    from vllm import sampling_params

    if hasattr(sampling_params, "StructuredOutputsParams"):
        return {"structured_outputs": sampling_params.StructuredOutputsParams(json=dict(shape.schema))}
    return {"guided_decoding": sampling_params.GuidedDecodingParams(json=dict(shape.schema))}


def _entities(text: str) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(read_entities(parse(text).value)))[:MAX_ENTITIES]
    except BadAnswer:
        return ()


def _triples(text: str) -> list[Any]:
    try:
        return read_triples(parse(text).value)
    except BadAnswer:
        return []
