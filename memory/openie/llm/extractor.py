"""OpenIE by a language model in two calls per passage (HippoRAG, section 2.2; HippoRAG 1's appendix has the prompts of both
papers)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memory.llm.client import ModelClient, Reply
from memory.llm.errors import BadAnswer, ModelError, ModelRefused
from memory.llm.json_answers import get_field, replace_surrogates
from memory.llm.limiter import Limiter
from memory.llm.messages import shown_text
from memory.openie.llm.prompts import ENTITIES_SCHEMA, TRIPLES_SCHEMA, entity_messages, fingerprint, triple_messages
from memory.openie.registry import CountDropped
from memory.phrase_normalisation import normalise_phrase, normalise_triple
from store.types import Extraction, PassageText, Triple

MAX_PASSAGE_ENTITIES = 200
MAX_PASSAGE_TRIPLES = 400
MAX_PART_CHARS = 400
"""Limits of an answer, because a longer answer is usually a repetition. Excess content is dropped and counted."""
PIECE_CHARS = 12_000
"""A longer passage is read in pieces, because models overlook the middle of long texts, and long answers are truncated."""
MIN_PIECE_CHARS = 200
MAX_HALVINGS = 4
ENDLESS_RATIO = 6
"""A truncated answer is endless if its triples are this many times as long as the passage. An endless answer is not retried
with half of the passage, because that answer would be endless too."""


@dataclass(frozen=True, slots=True)
class NamedEntities:
    """The result and the cost of the first call. It is saved, so that it is not paid again if the second call fails."""

    names: tuple[str, ...]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    took_ms: float = 0.0


LoadEntities = Callable[[str], NamedEntities | None]
SaveEntities = Callable[[str, NamedEntities], None]


@dataclass(slots=True)
class _CallCost:
    prompt: int = 0
    completion: int = 0
    began: float = field(default_factory=time.perf_counter)

    def add(self, reply: Reply) -> None:
        self.prompt += reply.prompt_tokens
        self.completion += reply.completion_tokens

    def add_failed(self, error: ModelError) -> None:
        """Adds the tokens of a failed call, because unusable answers cost too."""
        self.prompt += error.prompt_tokens
        self.completion += error.completion_tokens

    @property
    def ms(self) -> float:
        return (time.perf_counter() - self.began) * 1000


def extractor_name(model: str) -> str:
    """Returns the extractor's name in the store: model and fingerprint of the prompts. All backends that run the model share
    it."""
    return f"llm/{model}/{fingerprint()}"


class LLMExtractor:
    """Extracts from one passage per call. The limiter decides how many calls run concurrently."""

    def __init__(
        self, client: ModelClient, limiter: Limiter, count_dropped: CountDropped = lambda _why, _count: None
    ) -> None:
        self.name = extractor_name(client.settings.model)
        self._client = client
        self._limiter = limiter
        self._count_dropped = count_dropped

    async def read(
        self,
        passage: PassageText,
        load: LoadEntities = lambda _passage: None,
        save: SaveEntities = lambda _passage, _entities: None,
    ) -> Extraction:
        """`load` and `save` keep the result of the first call.

        Raises ModelDown if the server fails, and ModelRefused or BadAnswer if this passage cannot be read.
        """
        first = load(passage.id)
        if first is None:
            cost = _CallCost()
            names = await self._entities(passage, cost, 0)
            first = NamedEntities(
                tuple(dict.fromkeys(names))[:MAX_PASSAGE_ENTITIES], cost.prompt, cost.completion, cost.ms
            )
            save(passage.id, first)
        cost = _CallCost(first.prompt_tokens, first.completion_tokens)
        triples = await self._triples(passage, first.names, cost, 0)
        return build_extraction(
            passage,
            self.name,
            first.names,
            triples,
            self._count_dropped,
            cost.prompt,
            cost.completion,
            first.took_ms + cost.ms,
        )

    async def _entities(self, passage: PassageText, cost: _CallCost, depth: int) -> list[str]:
        if pieces := split_passage(passage):
            return [name for piece in pieces for name in await self._entities(piece, cost, depth)]
        try:
            names, reply = await self._client.ask(
                "entities", entity_messages(passage), ENTITIES_SCHEMA, parse_entities, self._limiter
            )
        except ModelRefused as error:
            halves = halve_passage(passage, depth) if error.too_long else []
            if not halves:
                raise
            cost.add_failed(error)
            return [name for piece in halves for name in await self._entities(piece, cost, depth + 1)]
        cost.add(reply)
        return names[:-1] if reply.cut else names

    async def _triples(self, passage: PassageText, names: tuple[str, ...], cost: _CallCost, depth: int) -> list[Any]:
        if pieces := split_passage(passage):
            return [triple for piece in pieces for triple in await self._triples(piece, names, cost, depth)]
        try:
            triples, reply = await self._client.ask(
                "triples",
                triple_messages(passage, names_within(passage, names)),
                TRIPLES_SCHEMA,
                parse_triples,
                self._limiter,
            )
        except ModelRefused as error:
            halves = halve_passage(passage, depth) if error.too_long else []
            if not halves:
                raise
            cost.add_failed(error)
            return [triple for piece in halves for triple in await self._triples(piece, names, cost, depth + 1)]
        cost.add(reply)
        if not reply.cut:
            return triples
        halves = [] if is_endless(triples, passage) else halve_passage(passage, depth)
        if not halves:
            return triples[:-1]  # the last triple may be incomplete
        return [triple for piece in halves for triple in await self._triples(piece, names, cost, depth + 1)]


def names_within(passage: PassageText, names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names that occur in this piece of the passage, in the form that the model saw; all names if none occurs."""
    shown = shown_text(passage.full)
    return tuple(name for name in names if shown_text(name) in shown) or names


def parse_entities(value: Any) -> list[str]:
    """Returns the names in a model's answer; items that are not text are dropped."""
    names = get_field(value, "named_entities", "entities")
    if not isinstance(names, list):
        raise BadAnswer("wrong schema", '"named_entities" is not a list')
    return [replace_surrogates(name) for name in names if isinstance(name, str) and 0 < len(name) <= MAX_PART_CHARS]


def parse_triples(value: Any) -> list[Any]:
    """Returns the triples in a model's answer, unchecked. Objects with subject, predicate and object become lists."""
    triples = get_field(value, "triples")
    if not isinstance(triples, list):
        raise BadAnswer("wrong schema", '"triples" is not a list')
    return [_parts(triple) for triple in triples]


def _parts(triple: Any) -> Any:
    if isinstance(triple, dict) and {"subject", "predicate", "object"} <= triple.keys():
        return [triple["subject"], triple["predicate"], triple["object"]]
    return triple


def is_endless(triples: list[Any], passage: PassageText) -> bool:
    """Whether a truncated answer states far more than the passage can contain."""
    chars = sum(len(part) for triple in triples if isinstance(triple, list) for part in triple if isinstance(part, str))
    return chars > ENDLESS_RATIO * len(passage.full)


def is_grounded(triple: Triple, text: str) -> bool:
    """Whether the triple's subject or object occurs in a text. `text`: normalised like phrases, with a space at each end."""
    # In scripts without spaces, and in inflected words of other scripts, a phrase may be a part of a word.
    ends = triple[0], triple[2]
    return any(f" {end} " in text or (not end.isascii() and end in text) for end in ends)


def build_extraction(
    passage: PassageText,
    name: str,
    names: tuple[str, ...],
    triples: list[Any],
    count_dropped: CountDropped,
    prompt_tokens: int,
    completion_tokens: int,
    took_ms: float,
) -> Extraction:
    """Returns an extraction with normalised phrases. Malformed triples are dropped and counted."""
    text = f" {normalise_phrase(passage.full)} "
    accepted: dict[Triple, None] = {}
    dropped: dict[str, int] = {}
    for raw in triples:
        reason = None
        if not isinstance(raw, list) or len(raw) != 3 or not all(isinstance(part, str) for part in raw):
            reason = "parts"
        elif any(len(part) > MAX_PART_CHARS for part in raw):
            reason = "long"
        elif (triple := normalise_triple(raw)) is None:
            reason = "empty"
        elif triple in accepted:
            reason = "repeated"
        elif not is_grounded(triple, text):
            reason = "ungrounded"
        elif len(accepted) >= MAX_PASSAGE_TRIPLES:
            reason = "excess"
        else:
            accepted[triple] = None
        if reason is not None:
            dropped[reason] = dropped.get(reason, 0) + 1
    for reason, count in dropped.items():
        count_dropped(reason, count)
    entities = dict.fromkeys(phrase for phrase in map(normalise_phrase, names) if phrase)
    return Extraction(passage.id, name, tuple(entities), tuple(accepted), prompt_tokens, completion_tokens, took_ms)


def split_passage(passage: PassageText) -> list[PassageText]:
    """Returns the pieces of a passage that is too long for one call; otherwise []."""
    if len(passage.text) <= PIECE_CHARS:
        return []
    out, rest = [], passage.text
    while len(rest) > PIECE_CHARS:
        at = _boundary(rest, PIECE_CHARS // 2, PIECE_CHARS)
        out.append(rest[:at])
        rest = rest[at:]
    return [PassageText(passage.id, passage.title, text) for text in [*out, rest]]


def halve_passage(passage: PassageText, depth: int) -> list[PassageText]:
    """Returns the two halves of a passage; [] if it is too short or was already divided `MAX_HALVINGS` times."""
    length = len(passage.text)
    if depth >= MAX_HALVINGS or length < 2 * MIN_PIECE_CHARS:
        return []
    at = _boundary(passage.text, length // 4, length * 3 // 4, length // 2)
    return [PassageText(passage.id, passage.title, text) for text in (passage.text[:at], passage.text[at:])]


def _boundary(text: str, low: int, high: int, near: int | None = None) -> int:
    """Returns where to divide the text: after the last paragraph, line, sentence or word that ends between `low` and `near` (by
    default, `high`)."""
    end = near or high
    for mark in ("\n\n", "\n", ". ", "。", " "):
        at = text.rfind(mark, low, end)
        if at >= 0:
            return at + len(mark)
    return end
