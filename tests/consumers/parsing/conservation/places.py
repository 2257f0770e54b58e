"""Conservation of text: every word of a file is in a passage, in the metadata, or in the account of omissions.

Each module `*_places.py` next to this one has one `TABLE`: the places where a format's specification allows text, each with the
section that says so, and a function that writes a file with a word in some of these places. `test_conservation.py` finds the
modules by their names, so a new format needs a module and nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

from consumers.types import ParsedDocument

Words = Mapping[str, str]
"""The word of each place that is to have one."""


@dataclass(frozen=True, slots=True)
class FormatTable:
    """`places`: the name of each place and the section that allows text there. `write` gets words for some of them."""

    file_name: str
    specification: str
    places: Mapping[str, str]
    write: Callable[[Words], bytes]


def unique_words(places: Mapping[str, str]) -> dict[str, str]:
    """A pronounceable word for each place; no word is a part of another, and no parser knows one."""
    syllables = ["".join(pair) for pair in product("bdfgklmnprstvz", "aeiou")]
    return {
        place: f"{syllables[number % 70]}{syllables[number // 70 % 70]}{syllables[(7 * number + 3) % 70]}quex"
        for number, place in enumerate(places)
    }


def conserved_text(document: ParsedDocument) -> str:
    """All that hippod keeps of a document, in lower case."""
    parts = [document.title, *map(str, document.metadata.values()), *(each.text for each in document.left_out)]
    parts += [f"{passage.title}\n{passage.text}" for passage in document.passages]
    return "\n".join(parts).casefold()
