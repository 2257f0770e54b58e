"""Draws triples of several extractors in random order, to be labelled without knowing which extractor made them.

    python -m bench.support.blind_sample SEED COUNT PASSAGES old=FILE new= > sample.json

PASSAGES is a JSON list of [title, text]. `NAME=` is this checkout's extractor, `NAME=FILE` a JSON list of each passage's
triples (of another version or method). The sample is written to standard output, the key to standard error. Earlier labels are
in `blind_triple_labels.json`.
"""

import json
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from memory.openie.rules.extractor import RulesExtractor
from store.types import PassageText, is_statement


def _statements(passages: Sequence[tuple[str, str]], source: str) -> list[tuple[int, list[str]]]:
    if source:
        found = json.loads(Path(source).read_text("utf-8"))
    else:
        texts = [PassageText(str(i), title, text) for i, (title, text) in enumerate(passages)]
        found = [each.triples for each in RulesExtractor().extract(texts)]
    return [(i, list(triple)) for i, triples in enumerate(found) for triple in triples if is_statement(tuple(triple))]


def _sentence(text: str, triple: Sequence[str]) -> str:
    """Returns the sentence with the most words of the triple."""
    sentences = [s for line in text.splitlines() for s in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", line) if s.strip()]
    words = set(" ".join(triple).split())
    return max(sentences or [""], key=lambda s: sum(word in s.lower() for word in words))[:400]


def main() -> None:
    """Prints the sample, and on standard error the extractor of each triple."""
    seed, count, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    passages = json.loads(Path(path).read_text("utf-8"))
    rng = random.Random(seed)
    drawn = []
    for argument in sys.argv[4:]:
        name, _, source = argument.partition("=")
        drawn += [(name, *each) for each in rng.sample(_statements(passages, source), count)]
    rng.shuffle(drawn)
    sample = [
        {"triple": triple, "title": passages[i][0], "sentence": _sentence(passages[i][1], triple)}
        for _, i, triple in drawn
    ]
    print(json.dumps({"seed": seed, "sample": sample}, ensure_ascii=False, indent=1))
    print(json.dumps([name for name, _, _ in drawn]), file=sys.stderr)


if __name__ == "__main__":
    main()
