"""Texts for a followed folder; each text answers one query."""

from typing import Any

from tests.e2e.real_hippod import Daemon

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
"""Surnames by version; combined with the given names, they make 200 different names per version."""
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
