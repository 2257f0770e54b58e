"""What a step's inquiries found, put together and numbered from 1 for the model. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory.answering.working_memory.records.inquiries import FoundPassage, Inquiry

Facts = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Material:
    """Entities, triples and passages of all inquiries, each once, in the order in which they were found."""

    entities: tuple[str, ...]
    triples: Facts
    passages: tuple[FoundPassage, ...]
    descriptions: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Of an entity (a tuple of one) or a triple: the sentence that tells of it, unless the passages have it already."""

    @property
    def phrases(self) -> frozenset[str]:
        """All phrases of the graph that stand in the passages."""
        return frozenset(phrase for passage in self.passages for phrase in passage.phrases)


def material_of(inquiries: Sequence[Inquiry]) -> Material:
    """What the model is shown of the inquiries: all but what was withheld."""
    entities: dict[str, None] = {}
    triples: dict[tuple[str, str, str], None] = {}
    passages: dict[str, FoundPassage] = {}
    for inquiry in inquiries:
        entities.update(dict.fromkeys(each.phrase for each in inquiry.entities))
        triples.update(dict.fromkeys((each.subject, each.predicate, each.object) for each in inquiry.triples))
        for passage in inquiry.passages:
            if passage.id not in inquiry.withheld:
                passages.setdefault(passage.id, passage)
    # What was withheld for its length does not come back in pieces.
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
    """The inquiries with the worse half of each one's shown passages withheld; None where that changes nothing."""
    out = []
    for inquiry in inquiries:
        shown = [passage.id for passage in inquiry.passages if passage.id not in inquiry.withheld]
        kept = (len(shown) + 1) // 2
        out.append(replace(inquiry, withheld=(*inquiry.withheld, *shown[kept:])))
    return tuple(out) if tuple(out) != tuple(inquiries) else None


def at_most(inquiries: Sequence[Inquiry], passages: int) -> tuple[Inquiry, ...]:
    """The inquiries shortened until no more than so many passages are shown, or each shows one."""
    while len(material_of(inquiries).passages) > passages and (shorter := shortened(inquiries)) is not None:
        inquiries = shorter
    return tuple(inquiries)
