"""From a batch to the exact change it makes: pure, so that what cannot be written is never half applied.

A passage's *effective* triples are a function of the documents that hold it: the union of what they give, if any gives
triples; else what the extractor found; nothing when no document holds it. Every count and edge follows from the effective
triples before and after, so the end state depends on the documents alone, in whatever order they came.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from store.errors import Incomplete
from store.index.lsh import sketch
from store.index.state import NOTHING, Delta, Given, Image, TripleKey
from store.index.synonyms import Rows, Scored, SynonymPlanner, Wanted, linkable, similar, wordings
from store.types import Batch, Document, PassageText, State, Triple


@dataclass(frozen=True, slots=True)
class SynonymRule:
    """`[graph]`: pairs with cosine >= `threshold`, an edge for each phrase's nearest `cap`."""

    threshold: float = 0.8
    cap: int = 100


@dataclass(frozen=True, slots=True)
class Missing:
    """What has to be encoded before a batch can be committed."""

    passages: tuple[PassageText, ...] = ()
    phrases: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()


def users_after(image: Image, batch: Batch) -> dict[str, dict[str, Given]]:
    """For each passage id that the batch touches: the documents that hold it afterwards, with the triples they give."""
    found: dict[str, dict[str, Given]] = {}

    def users(passage: str) -> dict[str, Given]:
        if passage not in found:
            row = image.passage_rows.get(passage)
            found[passage] = dict(image.users[row]) if row is not None else {}
        return found[passage]

    last: dict[str, Document] = {document.uri: document for document in batch.documents}
    for uri in [*last, *batch.removed]:
        old = image.documents.get(uri)
        for ref in old.passages if old else ():
            users(ref.passage).pop(uri, None)
    for uri, document in last.items():
        if document.state is not State.INDEXED:
            continue
        given: dict[str, Given] = {}
        for ref in document.passages:
            before = given.get(ref.passage)
            both = before if ref.given is None else tuple(sorted({*(before or ()), *ref.given}))
            given[ref.passage] = both
        for passage, triples in given.items():
            users(passage)[uri] = triples
    return found


def wanted(users: Mapping[str, Given], extracted: Sequence[Triple]) -> set[Triple]:
    """A passage's effective triples."""
    if not users:
        return set()
    given = [triples for triples in users.values() if triples is not None]
    if given:
        return {triple for triples in given for triple in triples}
    return set(extracted)


def unextracted(image: Image, batch: Batch) -> list[PassageText]:
    """Passages that will live, got no triples from their documents, and have no extraction yet; in first-seen order."""
    texts = {passage.id: passage for passage in batch.passages}
    done = {extraction.passage for extraction in batch.extractions}
    out: list[PassageText] = []
    for passage, users in users_after(image, batch).items():
        if not users or passage in done or any(given is not None for given in users.values()):
            continue
        row = image.passage_rows.get(passage)
        if row is None:
            out.append(texts[passage])
        elif image.extracted[row] is None:
            out.append(image.passages[row])
    return out


@dataclass(slots=True)
class _Numbers:
    """Rows for texts that the batch brings, following those that exist."""

    image: Image
    phrases: dict[str, int] = field(default_factory=dict)
    triples: dict[TripleKey, int] = field(default_factory=dict)
    new_ends: dict[int, tuple[int, int]] = field(default_factory=dict)

    def phrase(self, text: str) -> int:
        row = self.image.phrase_rows.get(text)
        if row is None:
            row = self.phrases.setdefault(text, len(self.image.phrases) + len(self.phrases))
        return row

    def triple(self, triple: Triple) -> int:
        key = (self.phrase(triple[0]), triple[1], self.phrase(triple[2]))
        row = self.image.triple_rows.get(key)
        if row is None:
            row = self.triples.setdefault(key, len(self.image.predicates) + len(self.triples))
            self.new_ends[row] = (key[0], key[2])
        return row

    def ends(self, triple: int) -> tuple[int, int]:
        """Subject's and object's phrase rows of a triple row."""
        if triple in self.new_ends:
            return self.new_ends[triple]
        subject, object_ = self.image.triple_ends.view()[triple]
        return int(subject), int(object_)

    def rows(self, triples: Iterable[Triple]) -> NDArray[np.int32]:
        return np.array(sorted({self.triple(triple) for triple in sorted(triples)}), np.int32)


def missing(image: Image, batch: Batch) -> Missing:
    """What of the batch the store has no vector for. Run it when `batch.extractions` are complete."""
    numbers = _Numbers(image)
    extracted = {extraction.passage: extraction.triples for extraction in batch.extractions}
    texts = {passage.id: passage for passage in batch.passages}
    passages: list[PassageText] = []
    for passage, users in users_after(image, batch).items():
        if passage not in image.passage_rows and users:
            passages.append(texts[passage])
        numbers.rows(wanted(users, ()))
    for triples in extracted.values():
        numbers.rows(triples)
    text_of = {row: text for text, row in numbers.phrases.items()}

    def text(row: int) -> str:
        return text_of[row] if row in text_of else image.phrases[row]

    triples_missing = tuple((text(s), predicate, text(o)) for s, predicate, o in numbers.triples)
    return Missing(tuple(passages), tuple(numbers.phrases), triples_missing)


def plan(image: Image, batch: Batch, rule: SynonymRule, now: float) -> Delta:
    """The change that `batch` makes to `image`. Raises Incomplete where the batch lacks a text or a vector."""
    delta = Delta()
    after = users_after(image, batch)
    texts = {passage.id: passage for passage in batch.passages}
    rows = _add_passages(image, delta, batch, after, texts)
    numbers = _Numbers(image)
    for extraction in batch.extractions:
        row = rows.get(extraction.passage, image.passage_rows.get(extraction.passage))
        if row is not None:
            delta.extractions.append(extraction)
            delta.extracted[row] = numbers.rows(extraction.triples)
    # A new extraction changes passages that no document of this batch touches, too.
    for extraction in delta.extractions:
        known = image.passage_rows.get(extraction.passage)
        if extraction.passage not in after and known is not None:
            after[extraction.passage] = image.users[known]
    for passage, users in after.items():
        row = rows.get(passage, image.passage_rows.get(passage, -1))
        if row >= 0:
            _change_passage(image, delta, numbers, row, users)
    _documents(image, delta, batch, now)
    _vectors(image, delta, batch, numbers)
    _count_phrases(image, delta, numbers, rule)
    return delta


def _add_passages(
    image: Image, delta: Delta, batch: Batch, after: Mapping[str, Mapping[str, Given]], texts: Mapping[str, PassageText]
) -> dict[str, int]:
    rows: dict[str, int] = {}
    for passage, users in after.items():
        if passage in image.passage_rows or not users:
            continue
        text, vector = texts.get(passage), batch.passage_vectors.get(passage)
        if text is None or vector is None:
            raise Incomplete(f"passage {passage} of {next(iter(users))} came without its text or vector")
        rows[passage] = len(image.passages) + len(rows)
        delta.passages.append(text)
        delta.passage_vectors.append(vector)
    return rows


def _change_passage(image: Image, delta: Delta, numbers: _Numbers, row: int, users: dict[str, Given]) -> None:
    known = row < len(image.passages)
    before = image.effective[row] if known else NOTHING
    held_by = len(image.users[row]) if known else 0
    given = [triples for triples in users.values() if triples is not None]
    if not users:
        after = NOTHING
    elif given:
        after = numbers.rows(wanted(users, ()))
    else:
        found = delta.extracted.get(row)
        if found is None and known:
            found = image.extracted[row]
        after = found if found is not None else NOTHING
    delta.users[row] = users
    if len(users) != held_by:
        delta.passage_changes[row] = len(users) - held_by
    if np.array_equal(before, after):
        return
    delta.effective[row] = after
    parts = numbers.ends

    old, new = set(before.tolist()), set(after.tolist())
    for triples, sign in ((sorted(old - new), -1), (sorted(new - old), 1)):
        for triple in triples:
            delta.triple_changes[triple] = delta.triple_changes.get(triple, 0) + sign
            delta.incidence.append((row, triple, float(sign)))
            subject, object_ = parts(triple)
            if subject != object_:
                delta.relation += [(subject, object_, float(sign)), (object_, subject, float(sign))]
    held_before = {phrase for triple in old for phrase in parts(triple)}
    held_after = {phrase for triple in new for phrase in parts(triple)}
    for phrases, sign in ((held_before - held_after, -1), (held_after - held_before, 1)):
        for phrase in sorted(phrases):
            delta.phrase_changes[phrase] = delta.phrase_changes.get(phrase, 0) + sign
            delta.context.append((row, phrase, float(sign)))


def _documents(image: Image, delta: Delta, batch: Batch, now: float) -> None:
    last = {document.uri: document for document in batch.documents}
    for document in last.values():
        refs = document.passages if document.state is State.INDEXED else ()
        delta.documents.append(
            Document(
                uri=document.uri,
                source=document.source,
                title=document.title,
                state=document.state,
                error=document.error,
                code=document.code,
                attempts=document.attempts,
                next_try=document.next_try,
                modified_at=document.modified_at,
                committed_at=now,
                metadata=document.metadata,
                passages=refs,
                payload=document.payload,
            )
        )
    delta.removed = [uri for uri in dict.fromkeys(batch.removed) if uri not in last and uri in image.documents]


def _vectors(image: Image, delta: Delta, batch: Batch, numbers: _Numbers) -> None:
    delta.phrases = list(numbers.phrases)
    delta.triples = list(numbers.triples)
    text_of = {row: text for text, row in numbers.phrases.items()}

    def text(row: int) -> str:
        return text_of[row] if row in text_of else image.phrases[row]

    for phrase in delta.phrases:
        if phrase not in batch.phrase_vectors:
            raise Incomplete(f"the phrase {phrase!r} came without its vector")
        delta.phrase_vectors.append(batch.phrase_vectors[phrase])
    for subject, predicate, object_ in delta.triples:
        triple = (text(subject), predicate, text(object_))
        if triple not in batch.triple_vectors:
            raise Incomplete(f"the triple {triple!r} came without its vector")
        delta.triple_vectors.append(batch.triple_vectors[triple])


def _count_phrases(image: Image, delta: Delta, numbers: _Numbers, rule: SynonymRule) -> None:
    """Which phrases come to have synonyms and which cease to, as they come and go and as the places about them fill."""
    known, total = len(image.phrases), len(image.phrases) + len(delta.phrases)
    new_text = {row: text for text, row in numbers.phrases.items()}
    extra = np.stack(delta.phrase_vectors) if delta.phrases else np.empty((0, image.dim), np.float32)
    extra_sketches = sketch(extra)
    linkable_new = extra.any(axis=1) & np.array([linkable(text) for text in delta.phrases], np.bool_)
    came: list[int] = []
    went: list[int] = []
    able = image.linkable.view() & image.phrase_vectors.view().known
    for row, change in sorted(delta.phrase_changes.items()):
        before = image.phrase_counts[row] if row < known else 0
        if not change or not (able[row] if row < known else linkable_new[row - known]):
            continue
        if before == 0:
            came.append(row)
        elif before + change == 0:
            went.append(row)
    if not came and not went:
        return
    arriving, leaving = np.array(came, np.int64), np.array(went, np.int64)
    present = np.zeros(total, np.bool_)
    present[:known] = image.present()
    crowded = np.zeros(total, np.bool_)
    crowded[:known] = image.crowding.rows.view().array() > 0
    could = present & ~crowded
    present[leaving] = False
    present[arriving] = True
    delta.crowding = image.crowding.plan(image.sketches.view(), extra_sketches, present, crowded, arriving, leaving)
    crowded[list(delta.crowding.rows)] = np.array(list(delta.crowding.rows.values()), np.bool_)
    can = present & ~crowded

    def text(row: int) -> str:
        return image.phrases[row] if row < known else new_text[row]

    new_wordings = wordings(delta.phrases)

    def wording(rows: Rows) -> Rows:
        out, old = np.empty(len(rows), np.int64), rows < known
        out[old], out[~old] = image.wordings.view()[rows[old]], new_wordings[rows[~old] - known]
        return out

    def search(rows: Rows, wanted: Wanted) -> Iterator[Scored]:
        vectors, sketches = image.phrase_vectors.view(), image.sketches
        bands = image.many
        return similar(
            vectors, extra, can, rows, rule.threshold, sketches, wanted=wanted, through_bands=bands, wording=wording
        )

    needs = np.concatenate([image.synonym_needs.view(), np.zeros(len(delta.phrases), np.float32)])
    planner = SynonymPlanner(rule.cap, total, text, lambda rows: synonym_edges(image, rows), search, needs)
    delta.synonyms = planner.plan(np.flatnonzero(could & ~can), np.flatnonzero(can & ~could))


def synonym_edges(image: Image, rows: Rows) -> Scored:
    """All synonym edges of `rows`; those that are new have none."""
    view = image.synonym.view(image.shape("synonym"))
    a, b, weights = view.entries(rows[rows < len(image.phrases)])
    return a.astype(np.int64), b.astype(np.int64), weights
