"""Phrases with uninformative vectors: all equal, or all in a narrow cone, compared with vectors in random directions.

A store is filled with these phrases in commits of `COMMIT_PASSAGES`, opened again from the tables alone, and half of its
documents are removed. Each step runs in its own process and reports its peak memory. `python -m bench.support.hostile_vectors
STEP SET COUNT FOLDER` runs one step.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.support.measuring import status_kb
from store.store import Store
from store.types import Batch, Document, EncoderIdentity, PassageRef, PassageText, SynonymRule, passage_id

DIM = 384
SETS = ("anywhere", "equal", "cone", "groups", "cones")
STEPS = ("fill", "rebuild", "halve")
CONE_COSINE = 0.95
"""Approximate cosine between any two vectors of the cone."""

GROUP_PHRASES = 190
"""Number of equal vectors that are not yet crowded (`store.index.synonyms.crowding`)."""

WIDE_CONE_PHRASES, WIDE_CONE_COSINE = 10_000, 0.82
"""Number of phrases, and cosine, of a cone nearly as wide as the synonym threshold allows."""

PASSAGE_TRIPLES = 50
"""Number of statements of a passage; each statement has two phrases that occur nowhere else."""

COMMIT_PASSAGES = 20
LETTERS = str.maketrans("0123456789", "abcdefghij")


def vectors(name: str, count: int) -> NDArray[np.float32]:
    """Returns vectors of shape (count, DIM), rows L2-normalised."""
    random = np.random.default_rng(7)
    found = random.standard_normal((count, DIM)).astype(np.float32)
    if name == "equal":
        found[:] = found[0]
    elif name == "groups":
        found = found[np.arange(count) % -(-count // GROUP_PHRASES)]
    elif name == "cone":
        _bend(found, random.standard_normal(DIM), CONE_COSINE)
    elif name == "cones":
        axes = -(-count // WIDE_CONE_PHRASES)
        for first in range(axes):
            found[first::axes] = _bend(found[first::axes], random.standard_normal(DIM), WIDE_CONE_COSINE)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def _bend(found: NDArray[np.float32], axis: NDArray[np.float64], cosine: float) -> NDArray[np.float32]:
    """Turns vectors in place towards `axis`, so that any two of them have a cosine of about `cosine`."""
    found -= np.outer(found @ axis, axis / (axis @ axis)).astype(np.float32)
    found *= (np.sqrt(1 - cosine) / np.linalg.norm(found, axis=1))[:, None]
    found += (np.sqrt(cosine) * axis / np.linalg.norm(axis)).astype(np.float32)
    return found


def _open(folder: Path) -> Store:
    return Store(folder, EncoderIdentity("hostile", DIM), SynonymRule(variants=False))


def in_letters(number: int | str) -> str:
    """Returns a number's digits as letters, because phrases that differ only in numbers are not synonyms."""
    return str(number).translate(LETTERS)


def row_of(phrase: str) -> int:
    """Returns the number that `in_letters` wrote as the second word of a phrase."""
    return int("".join(str(ord(letter) - ord("a")) for letter in phrase.split()[1]))


def _phrase(number: int) -> str:
    return f"phrase {in_letters(number)}"


def _document(number: int) -> tuple[Document, PassageText]:
    first = 2 * PASSAGE_TRIPLES * number
    triples = tuple((_phrase(first + 2 * i), "near", _phrase(first + 2 * i + 1)) for i in range(PASSAGE_TRIPLES))
    text = f"passage {number}"
    passage = PassageText(passage_id("", text), "", text)
    return Document(f"d{number}", "hostile", passages=(PassageRef(passage.id, {}, triples),)), passage


def fill(name: str, count: int, folder: Path) -> dict[str, Any]:
    every, unit = vectors(name, count), np.eye(1, DIM, dtype=np.float32)[0]
    before = status_kb("VmRSS")
    began, slowest, most_edges = time.process_time(), 0.0, 0
    with _open(folder) as store:
        for start in range(0, count // (2 * PASSAGE_TRIPLES), COMMIT_PASSAGES):
            made = [_document(number) for number in range(start, start + COMMIT_PASSAGES)]
            batch = Batch(tuple(document for document, _ in made), (), tuple(passage for _, passage in made))
            missing = store.missing(batch)
            batch = replace(
                batch,
                passage_vectors={passage.id: unit for passage in missing.passages},
                phrase_vectors={phrase: every[row_of(phrase)] for phrase in missing.phrases},
                triple_vectors=dict.fromkeys(missing.triples, unit),
            )
            commit = time.process_time()
            store.commit(batch)
            slowest = max(slowest, time.process_time() - commit)
            most_edges = max(most_edges, store.snapshot().edges["synonym"])
        return _found(store, began, before) | {"slowest_commit_cpu_s": round(slowest, 1), "most_edges": most_edges}


def rebuild(_name: str, _count: int, folder: Path) -> dict[str, Any]:
    """Opens the store from the tables alone."""
    before, began = status_kb("VmRSS"), time.process_time()
    with _open(folder) as store:
        return _found(store, began, before)


def halve(_name: str, count: int, folder: Path) -> dict[str, Any]:
    """Removes every second document, `COMMIT_PASSAGES` documents at a time."""
    before = status_kb("VmRSS")
    with _open(folder) as store:
        began = time.process_time()
        uris = [f"d{number}" for number in range(0, count // (2 * PASSAGE_TRIPLES), 2)]
        for start in range(0, len(uris), COMMIT_PASSAGES):
            store.commit(Batch(removed=tuple(uris[start : start + COMMIT_PASSAGES])))
        return _found(store, began, before)


def _found(store: Store, began: float, before: int) -> dict[str, Any]:
    snapshot = store.snapshot()
    return {
        "cpu_s": round(time.process_time() - began, 1),
        "phrases": snapshot.living_phrases,
        "crowded": snapshot.crowded_phrases,
        "edges": snapshot.edges["synonym"],
        "peak_mb_above_start": (status_kb("VmHWM") - before) >> 10,
    }


if __name__ == "__main__":
    steps = {"fill": fill, "rebuild": rebuild, "halve": halve}
    print(json.dumps(steps[sys.argv[1]](sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))))
