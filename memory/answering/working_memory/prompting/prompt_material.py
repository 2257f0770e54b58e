"""Combines the results of a step's inquiries and numbers them from 1 for the model. Pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory.answering.working_memory.records.inquiries import FoundPassage, Inquiry

Facts = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Material:
    """Distinct entities, triples and passages of all inquiries, in the order in which they were found."""

    entities: tuple[str, ...]
    triples: Facts
    passages: tuple[FoundPassage, ...]
    descriptions: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Sentences about an entity (a tuple of one phrase) or a triple, unless the passages already contain them."""

    @property
    def phrases(self) -> frozenset[str]:
        """All phrases of the graph that occur in the passages."""
        return frozenset(phrase for passage in self.passages for phrase in passage.phrases)


def material_of(inquiries: Sequence[Inquiry]) -> Material:
    """Returns the material of the inquiries that the model is shown, without withheld passages."""
    entities: dict[str, None] = {}
    triples: dict[tuple[str, str, str], None] = {}
    passages: dict[str, FoundPassage] = {}
    for inquiry in inquiries:
        entities.update(dict.fromkeys(each.phrase for each in inquiry.entities))
        triples.update(dict.fromkeys((each.subject, each.predicate, each.object) for each in inquiry.triples))
        for passage in inquiry.passages:
            if passage.id not in inquiry.withheld:
                passages.setdefault(passage.id, passage)
    # Sentences of a passage that was withheld for its length must not reappear as descriptions.
    known = {*passages, *(id for inquiry in inquiries for id in inquiry.withheld)}
    descriptions: dict[tuple[str, ...], str] = {}
    for inquiry in inquiries:
        for entity in inquiry.entities:
            if entity.description and entity.source not in known:
                descriptions.setdefault((entity.phrase,), entity.description)
        for triple in inquiry.triples:
            if triple.description and triple.source not in known:
                descriptions.setdefault((triple.subject, triple.predicate, triple.object), triple.description)
    return Material(tuple(entities), tuple(triples), tuple(passages.values()), descriptions)


def shortened(inquiries: Sequence[Inquiry]) -> tuple[Inquiry, ...] | None:
    """Withholds the worse half of each inquiry's shown passages; returns None if that changes nothing."""
    out = []
    for inquiry in inquiries:
        shown = [passage.id for passage in inquiry.passages if passage.id not in inquiry.withheld]
        kept = (len(shown) + 1) // 2
        out.append(replace(inquiry, withheld=(*inquiry.withheld, *shown[kept:])))
    return tuple(out) if tuple(out) != tuple(inquiries) else None


def at_most(inquiries: Sequence[Inquiry], passages: int) -> tuple[Inquiry, ...]:
    """Shortens the inquiries until at most `passages` passages are shown in total, or each inquiry shows one."""
    while len(material_of(inquiries).passages) > passages and (shorter := shortened(inquiries)) is not None:
        inquiries = shorter
    return tuple(inquiries)
