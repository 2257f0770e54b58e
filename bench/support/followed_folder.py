"""For the sections with a real folder: tables, and texts that each answer one query."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.e2e.real_hippod import ROOT, Daemon

CORPUS = ROOT.parent / "shared" / "data" / "2wiki" / "corpus.json"

GIVEN = [
    "Alma",
    "Bertil",
    "Cora",
    "Doran",
    "Elin",
    "Folke",
    "Greta",
    "Harald",
    "Ilse",
    "Jon",
    "Katla",
    "Leif",
    "Maren",
    "Nils",
    "Oda",
    "Per",
    "Ragna",
    "Sixten",
    "Tove",
    "Ulrik",
]
SURNAMES = {
    "first": ["Holm", "Quist", "Aasen", "Brandt", "Castor", "Dorn", "Ekdahl", "Frost", "Grane", "Hjort"],
    "second": ["Falk", "Ibsen", "Jarl", "Kvist", "Lund", "Mark", "Norrby", "Oxen", "Palm", "Rask"],
}
"""Surnames by version: with the given names, 200 different names for each version."""
CRAFTS = ("clock", "violin", "kite", "loom", "kiln", "sledge", "lantern", "compass", "harp", "globe")
TOWNS = ("Varnhem", "Tollmin", "Skara", "Pellan", "Ostrel", "Marnby", "Lindau", "Karrow", "Hjo", "Grenna")


def person(number: int, version: str) -> str:
    return f"{GIVEN[number % 20]} {SURNAMES[version][number // 20 % 10]}"


def text_about(number: int, version: str) -> str:
    """Returns some sentences about a person whom no other text mentions."""
    name, craft, town = person(number, version), CRAFTS[number % 10], TOWNS[number // 10 % 10]
    return (
        f"# {name}\n\n{name} built the {craft} of {town} in {1700 + number}. The {craft} hangs in the hall of {town}, "
        f"where {name} was born. It was mended twice, and {name} wrote a book about it before leaving {town} for good.\n"
    )


def write_corpus(daemon: Daemon, corpus: list[dict[str, Any]]) -> None:
    for entry in corpus:
        daemon.write(f"{entry['idx'] % 64:02}/{entry['idx']}.md", f"# {entry['title']}\n\n{entry['text']}\n")


def percentiles(values: list[float]) -> dict[str, float]:
    p50, p95, p99 = (float(value) for value in np.percentile(values, (50, 95, 99)))
    return {"p50": p50, "p95": p95, "p99": p99, "max": max(values), "n": len(values)}


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
