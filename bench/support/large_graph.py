"""A memory of the size of the HippoRAG 2 paper's MuSiQue graph: 97 thousand nodes, 1.4 million edges.

Passages, triples and phrase frequencies are copied several times from the recorded extraction of 1,890 passages. Phrases that
occur in several passages, and a tenth of the other phrases, are equal in all copies; the remaining phrases differ. Synonym
edges are drawn with the real set's degrees as weights, until there are as many edges as in the paper. Vectors are random,
because the cost of a query does not depend on them.
"""

from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from bench.support.hostile_vectors import in_letters
from memory.openie.hipporag_file import read_hipporag_file
from store.index.columns.row_lists import list_arrays
from store.index.live_index import LiveIndex
from store.index.triple_change import Entries
from store.scope.scoped_index import derive_counts
from store.snapshot import Snapshot
from store.types import PassageText, Triple, passage_id

PASSAGES = 11_656
EDGES = 1_400_000
DIM = 384


def large_snapshot(recorded: Path, seed: int = 0) -> Snapshot:
    """Returns the snapshot. `recorded` is a HippoRAG OpenIE results file."""
    image = LiveIndex(DIM)
    random = np.random.default_rng(seed)
    stated = _passages(image, recorded)
    for name, vectors in image.vectors.items():
        drawn = random.standard_normal((image.size(name), DIM), dtype=np.float32)
        vectors.extend(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))
    for row in range(len(stated)):
        image.holders[row] = {"recorded": None}
    derive_counts(image, list_arrays(stated))
    relation, context = (image.matrices[name].view().base for name in ("relation", "context"))
    image.matrices["synonym"].set(*_synonyms(random, np.diff(relation.indptr), EDGES - relation.nnz // 2 - context.nnz))
    return Snapshot(image, 1, 0.0)


def _passages(image: LiveIndex, recorded: Path) -> list[np.ndarray]:
    """Adds passages, phrases and triples; returns the triples' rows by passage."""
    docs = list(read_hipporag_file(recorded))
    held = Counter(phrase for doc in docs for phrase in {end for s, _, o in doc.triples for end in (s, o)})

    def named(phrase: str, copy: int) -> str:
        return phrase if held[phrase] > 1 or crc32(phrase.encode()) % 10 == 0 else f"{phrase} {in_letters(copy)}"

    passages: list[PassageText] = []
    stated: list[list[Triple]] = []
    for number in range(PASSAGES):
        copy, doc = number // len(docs), docs[number % len(docs)]
        title = f"{doc.title} ({copy})"
        passages.append(PassageText(passage_id(title, doc.text), title, doc.text))
        stated.append(list({(named(s, copy), p, named(o, copy)) for s, p, o in doc.triples}))
    image.add_passages(passages)
    image.add_phrases(sorted({end for triples in stated for s, _, o in triples for end in (s, o)}))
    keys = [[(image.phrase_rows[s], p, image.phrase_rows[o]) for s, p, o in sorted(triples)] for triples in stated]
    image.add_triples(sorted({key for each in keys for key in each}))
    return [np.array(sorted(image.triple_rows[key] for key in each), np.int32) for each in keys]


def _synonyms(random: np.random.Generator, degrees: Any, count: int) -> Entries:
    """Returns `count` edges between phrases, drawn with weights that grow with `degrees`."""
    weights = np.cumsum(degrees + 1.0)
    pairs = np.searchsorted(weights, random.random((int(count * 1.25), 2)) * weights[-1])
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    pairs = random.permutation(pairs)[:count]
    scores = random.uniform(0.8, 1.0, len(pairs)).astype(np.float32).astype(np.float64)
    rows, cols = np.concatenate([pairs, pairs[:, ::-1]]).T
    return rows, cols, np.concatenate([scores, scores])
