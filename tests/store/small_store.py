"""A store over the oracle's vectors and an extractor that depends on the text alone."""

from store.export.json_lines import export_lines
from store.store import Store
from store.types import (
    Batch,
    Document,
    EncoderIdentity,
    Extraction,
    Link,
    PassageRef,
    PassageText,
    SynonymRule,
    passage_id,
)
from tests.store import oracle

PHRASES = [
    f"{start}{end}"
    for start in ("am", "bo", "cy")
    for end in ("", "mber", "mbers", "mbered", "m ber", "mbering of the fox", "mber fox", "xe", "xes oak", "oak")
]
"""Forms of a few names: some forms with the same beginning are variants of one wording."""
HOSTILE = [f"{start} {end}" for start in ("eq", "un") for end in ("oak", "elm", "ash", "fir", "all")]
"""Phrases with one common vector, and phrases with a zero vector."""
NUMBERED = ["cy 1", "cy 2", "cy 2 a", "cy 7 b", "cy ii", "bo 3 march", "bo may 12", "bo4", "bo5"]
NUMBERED += ["1942", "1943", "march 9", "march 12 2015"]
"""Phrases that differ in numbers and dates; some consist only of these."""


def open_store(folder, rule=None):
    rule = rule or SynonymRule(oracle.THRESHOLD)
    return Store(folder, EncoderIdentity("oracle", oracle.DIM), rule)


def numbered_documents(first, last):
    """Returns documents `d0`, `d1` and so on in the form that `complete` accepts."""
    return {f"d{i}": [("T" * (i % 3), f"text {i}", None)] for i in range(first, last)}


def exported(store):
    return list(export_lines(store.snapshot()))


def extract(title, text):
    """An extractor that depends on the text alone, like the real extractors."""
    i = int(text.split()[1])
    ring = [PHRASES[(7 * i + k * (3 + len(title))) % len(PHRASES)] for k in range(5)]
    return [(ring[k], "rel" if k % 3 else "", ring[k + 1]) for k in range(i % 5)]


def reading(title, text, version=0):
    """Returns the triples of a passage's extraction number `version`: different each time."""
    return extract(title, f"text {int(text.split()[1]) + 3 * version}")


def links_of(uri, text):
    """Returns the links of a document in a passage; another document with this passage may have different links."""
    return (Link(f"{uri[-1]}/{text}"), Link("b", "Part", text)) if text[-1] in "1357" else ()


def complete(store, documents, removed, extract=extract, again=(), vector=oracle.vector, labels=None):
    """Completes a batch like the indexer: asks the store for missing data, and adds it.

    - `documents`: by URI (title, text, triples) or, for a record, (title, text, triples, extractor).
    - `again`: (title, text) of passages that are extracted again.
    - `labels`: by URI.
    """
    texts = {}
    records = []
    for uri, passages in documents.items():
        refs = []
        for title, text, triples, *extractor in passages:
            id = passage_id(title, text)
            texts[id] = PassageText(id, title, text)
            by = extractor[0] if extractor else None
            refs.append(PassageRef(id, {"line": 1}, triples, by, links_of(uri, text)))
        metadata = {"labels": [labels[uri]], "tags": [labels[uri]]} if labels else {}
        records.append(Document(uri, "test", metadata=metadata, passages=tuple(refs)))
    batch = Batch(tuple(records), tuple(removed), tuple(texts.values()))
    read = {p.id: (p.title, p.text) for p in store.unextracted(batch)}
    read |= {passage_id(*each): each for each in again}
    found = tuple(Extraction(id, "oracle", triples=tuple(dict.fromkeys(extract(*each)))) for id, each in read.items())
    batch = Batch(batch.documents, batch.removed, batch.passages, found)
    missing = store.missing(batch)
    return Batch(
        batch.documents,
        batch.removed,
        batch.passages,
        found,
        {p.id: vector(p.full) for p in missing.passages},
        {phrase: vector(phrase) for phrase in missing.phrases},
        {triple: vector(" ".join(triple)) for triple in missing.triples},
        {uri: {"seen": len(records)} for uri in documents} | dict.fromkeys(removed),
    )
