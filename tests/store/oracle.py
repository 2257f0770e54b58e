"""The simplest definition of a memory: derives the lines of `export` from its documents.

Shares no code with the store: only loops and dictionaries.
"""

import json
import re
from collections.abc import Collection, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

Triple = tuple[str, str, str]
Given = Collection[Triple] | None
Documents = dict[str, Sequence[tuple[str, str, Given] | tuple[str, str, Given, str | None]]]
"""Passages by URI: (title, text, given triples) or (title, text, given triples, name of their extractor)."""
DIM = 8
THRESHOLD = 0.8
CELL_PHRASES, FULL_CELLS = 200, 4
"""A phrase is crowded if at least `FULL_CELLS` cells of its sketch contain more than `CELL_PHRASES` phrases."""


@cache
def vector(text: str) -> NDArray[np.float32]:
    """Returns a unit vector that depends on the text; texts with equal first two letters have close vectors.

    Texts that begin with "eq" share one vector; the vector of those that begin with "un" is zero.
    """

    def noise(key: str) -> NDArray[np.float64]:
        seed = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")
        return np.random.default_rng(seed).standard_normal(DIM)

    if text.startswith("un"):
        return np.zeros(DIM, np.float32)
    v = noise(text[:2]) + (0 if text.startswith("eq") else 0.35) * noise(text)
    unit: NDArray[np.float64] = v / np.linalg.norm(v)
    return unit.astype(np.float32)


def rounded_vectors(vectors):
    """Returns the vectors as a memory stores them.

    Each component is a multiple of the smallest power of two that needs no multiple above 32767.
    """
    exact = np.asarray(vectors, np.float32).astype(float)
    largest = np.abs(exact).max(axis=-1, keepdims=True, initial=2.0**-100)
    unit = np.maximum(2.0 ** np.ceil(np.log2(largest / 32767.5)), 2.0**-100)
    return (np.round(exact / unit) * unit).astype(np.float32)


def export(documents, extract, vector=vector, by_texts=True):
    """`documents`: {uri: [(title, text, given or None, ...), ...]}; `extract(title, text)` returns the local extractor's
    triples.

    A passage has the union of its documents' given triples. If none is given, it has the local extractor's triples, unless
    every document was given triples, possibly an empty list. A triple without a predicate is a mention edge. `vector(text)` is
    the encoder.
    """
    held: dict[tuple[str, str], dict[str, set[Triple] | None]] = {}
    for uri, passages in documents.items():
        for title, text, given, *_ in passages:
            users = held.setdefault((title, text), {})
            if given is not None:
                users[uri] = set(users.get(uri) or ()) | set(given)
            else:
                users.setdefault(uri, None)
    passages, context, triples = {}, set(), set()
    relation: dict[tuple[str, str], int] = {}
    mention: dict[tuple[str, str], int] = {}
    for (title, text), users in held.items():
        id = blake2b(f"{title}\0{text}".encode(), digest_size=16).hexdigest()
        passages[id] = (title, text)
        stated = set().union(*(given for given in users.values() if given is not None))
        if not stated and None in users.values():
            stated = set(extract(title, text))
        for s, p, o in stated:
            if p:
                triples.add((s, p, o))
            context |= {(id, s), (id, o)}
            if s != o:
                pair, counts = (min(s, o), max(s, o)), relation if p else mention
                counts[pair] = counts.get(pair, 0) + 1
    phrases = sorted({phrase for _, phrase in context})
    lines: list[dict[str, Any]] = [
        {"kind": "passage", "title": passages[id][0], "text": passages[id][1]} for id in sorted(passages)
    ]
    lines += [{"kind": "phrase", "text": phrase} for phrase in phrases]
    lines += [{"kind": "triple", "subject": s, "predicate": p, "object": o} for s, p, o in sorted(triples)]
    edges = [("context", s, t, 1.0) for s, t in sorted(context)]
    edges += [("mention", s, t, float(w)) for (s, t), w in sorted(mention.items())]
    edges += [("relation", s, t, float(w)) for (s, t), w in sorted(relation.items())]
    edges += [("synonym", s, t, w) for (s, t), w in sorted(synonyms(phrases, vector, by_texts).items())]
    lines += [{"kind": "edge", "type": k, "source": s, "target": t, "weight": w} for k, s, t, w in edges]
    return lines


def synonyms(phrases, vector=vector, by_texts=True):
    """`by_texts`: whether phrases must also be variants of one wording, or have no common words."""
    long_enough = [phrase for phrase in phrases if can_have_synonyms(phrase, vector)]
    known = {phrase: rounded_vectors(vector(phrase)).astype(float) for phrase in long_enough}
    apart = crowded(long_enough)
    long_enough = [phrase for phrase in long_enough if phrase not in apart]
    near = {}
    for a in long_enough:
        pairs = []
        for b in long_enough:
            cosine = float(np.float32(np.dot(known[a], known[b])))
            if (
                a != b
                and cosine >= np.float32(THRESHOLD)
                and (
                    not by_texts
                    or variants(a, b)
                    or (cosine >= THRESHOLD + 0.4 * (1 - THRESHOLD) and other_words(a, b))
                )
            ):
                pairs.append((-cosine, b))
        near[a] = pairs
    return {(min(a, b), max(a, b)): -cosine for a, pairs in near.items() for cosine, b in pairs}


def can_have_synonyms(phrase, vector=vector):
    """Whether a phrase that is not crowded can have synonyms: it is long enough, it is no number, and the encoder knows it."""
    long_enough = sum(c.isalnum() for c in phrase) > 2 or any("\u4e00" <= c <= "\u9fff" for c in phrase)
    return long_enough and not is_number(phrase) and bool(rounded_vectors(vector(phrase)).any())


DATES = {"march", "may", "january", "december"}
NUMBERS = {"one", "two", "six", "ten", "first", "second", "ii", "iii", "iv"}
AROUND_NUMBERS = {"of", "in", "the", "a", "section", "version", "part", "year"}


def is_number(phrase):
    """Whether a phrase is a number, a date, a version or the number of a section."""
    words = [word for word in phrase.split() if word not in AROUND_NUMBERS]
    return bool(words) and all(re.fullmatch(r"v?\d+(st|nd|rd|th|[a-z])?", w) or w in DATES | NUMBERS for w in words)


def variants(one, other):
    """Whether two of the phrases that the tests use have the same words, in any order and form, joined or apart."""
    joined = [root(phrase.replace(" ", "")) for phrase in (one, other)]
    return joined[0] == joined[1] or words(one) == words(other)


def words(phrase):
    return sorted(root(word) for word in phrase.split() if word not in ("of", "the"))


def root(word):
    return re.sub(r"(?<=[a-z]{4})(s|ed|ing)$", "", word)


def other_words(one, other):
    """Whether no phrase has a number, no word of one begins like a word of the other, and no Chinese character is in both."""
    starts = [{word[:3] for word in re.findall(r"[a-z0-9]+|[^a-z0-9 ]", phrase)} for phrase in (one, other)]
    return starts[0].isdisjoint(starts[1]) and not re.search(r"\d|\bii\b|\b2\b", f"{one} {other}")


@cache
def cells(text):
    """Returns the pieces of a phrase's sketch: the signs of 768 projections, computed with integers."""
    drawn = np.random.default_rng(20).standard_normal((DIM, 768))
    signs = [
        sum(round(float(a) * 4096) * round(b * 64) for a, b in zip(rounded_vectors(vector(text)), column, strict=True))
        for column in drawn.T
    ]
    return ["".join("1" if sign > 0 else "0" for sign in signs[start : start + 24]) for start in range(0, 768, 24)]


def crowded(phrases):
    """Returns the phrases whose vector has so many neighbours that they get no synonyms."""
    counts: dict[tuple[int, str], int] = {}
    for phrase in phrases:
        for cell in enumerate(cells(phrase)):
            counts[cell] = counts.get(cell, 0) + 1
    full = {cell for cell, count in counts.items() if count > CELL_PHRASES}
    return {phrase for phrase in phrases if sum(cell in full for cell in enumerate(cells(phrase))) >= FULL_CELLS}


def same(lines, expected):
    """Compares export lines with the oracle's lines, weights to 1e-6; returns None if they are equal, otherwise a message."""
    got = [json.loads(line) for line in lines]
    for i, (g, e) in enumerate(zip(got, expected, strict=False)):
        g, e = dict(g), dict(e)
        if abs(g.pop("weight", 0) - e.pop("weight", 0)) > 1e-6 or g != e:
            return f"line {i}: got {got[i]}, expected {expected[i]}"
    if len(got) != len(expected):
        return (
            f"{len(got)} lines, expected {len(expected)}; first extra: {(got + expected)[min(len(got), len(expected))]}"
        )
    return None
