"""Draw synonym edges for labelling by hand, and score the labels.

    python -m bench.support.synonym_labels draw SEED before=A.jsonl,B.jsonl after=C.jsonl,D.jsonl DRAWN.json
    python -m bench.support.synonym_labels score bench/support/labelled_synonyms.json

The files are exports (`hippoctl export`) of memories. `before` and `after` are two versions of hippod that read the same
documents. From each version, `draw` takes 100 random edges and the 100 weakest edges (lowest cosine), from its memories in
turn. It writes each pair once, in random order and with its two phrases in random order. A label must not depend on the
version, so the file ends with `drawn`, the pairs of each draw: label before you look at it.

The person who labels writes into `correct` the indices of the pairs whose phrases name the same thing: spelling variants,
inflected forms, plurals, abbreviations, translations and true synonyms. A part, a kind, a neighbour or another person of that
name is not the same thing.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

DRAWN = 100
Edge = tuple[float, str, str]


def synonym_edges(export: Path) -> list[Edge]:
    """Returns (cosine, phrase, phrase) of all synonym edges in an export, sorted."""
    with export.open(encoding="utf-8") as lines:
        edges = [edge for edge in map(json.loads, lines) if edge.get("type") == "synonym"]
    return sorted((edge["weight"], edge["source"], edge["target"]) for edge in edges)


def in_turns(memories: list[list[Edge]], count: int) -> list[Edge]:
    """Returns the first `count` edges, from the memories in turn; a pair in several memories occurs once."""
    taken: dict[tuple[str, str], Edge] = {}
    for place in range(max(map(len, memories))):
        for edges in memories:
            if place < len(edges) and len(taken) < count:
                taken.setdefault(edges[place][1:], edges[place])
    return list(taken.values())


def draw(seed: int, versions: dict[str, list[Path]]) -> dict[str, Any]:
    """Returns the pairs to label, and the draws that they belong to."""
    chance = random.Random(seed)
    drawn: dict[str, list[Edge]] = {}
    for version, exports in versions.items():
        memories = [synonym_edges(export) for export in exports]
        drawn[f"{version}, weakest"] = in_turns(memories, DRAWN)
        drawn[f"{version}, random"] = in_turns([chance.sample(edges, len(edges)) for edges in memories], DRAWN)
    pairs = sorted({edge[1:] for edges in drawn.values() for edge in edges})
    chance.shuffle(pairs)
    return {
        "seed": seed,
        "correct": [],
        "pairs": [chance.sample(pair, 2) for pair in pairs],
        "drawn": {name: sorted(pairs.index(edge[1:]) for edge in edges) for name, edges in drawn.items()},
    }


def shares(labelled: dict[str, Any]) -> dict[str, float]:
    """Returns the share of correct pairs in each draw."""
    correct = set(labelled["correct"])
    return {name: len(correct & set(pairs)) / len(pairs) for name, pairs in labelled["drawn"].items()}


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["score"] and len(arguments) == 2:
        for name, share in shares(json.loads(Path(arguments[1]).read_text("utf-8"))).items():
            print(f"{name}: {share:.0%} correct")
    elif arguments[:1] == ["draw"] and len(arguments) > 3:
        seed, *versions, target = arguments[1:]
        named = (version.split("=", 1) for version in versions)
        found = draw(int(seed), {name: [Path(path) for path in paths.split(",")] for name, paths in named})
        Path(target).write_text(json.dumps(found, ensure_ascii=False, indent=0) + "\n", "utf-8")
        print(f"seed {seed}: {len(found['pairs'])} pairs")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
