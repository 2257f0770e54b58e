"""Conservation of text: every word of a file is in a passage, in the metadata, or in the account of omissions.

Each module `*_places.py` next to this one has one `TABLE`: the places where a format's specification allows text, each with the
section that says so, and a function that writes a file with a word in some of these places. `test_conservation.py` finds the
modules by their names, so a new format needs a module and nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

from consumers.parsing.limits import Limits
from consumers.parsing.parse_file import DEFAULT_LIMITS, parse_data
from consumers.splitting import SplitSettings
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


Parts = Mapping[str, tuple[str, str]]
"""The section and the markup of each place; `{}` in the markup stands for the word."""


def text_table(
    file_name: str, specification: str, body: Parts, *, head: Parts | None = None, tail: Parts | None = None,
    between: tuple[str, str] = ("", ""), joint: str = "\n\n",
) -> FormatTable:  # fmt: skip
    """The table of a format whose files are the markup of their places, one below the other.

    `between`: what stands between head and body, and between body and tail, in every file.
    """
    groups = (head or {}, body, tail or {})

    def write(words: Words) -> bytes:
        parts = (
            joint.join(markup.replace("{}", words[place]) for place, (_, markup) in group.items() if place in words)
            for group in groups
        )
        above, text, below = parts
        return joint.join(filter(None, (above, between[0], text, between[1], below))).encode()

    places = {place: section for group in groups for place, (section, _) in group.items()}
    return FormatTable(file_name, specification, places, write)


def unique_words(places: Mapping[str, str]) -> dict[str, str]:
    """A pronounceable word for each place; no word is a part of another, and no parser knows one."""
    syllables = ["".join(pair) for pair in product("bdfgklmnprstvz", "aeiou")]
    return {
        place: f"{syllables[number % 70]}{syllables[number // 70 % 70]}{syllables[(7 * number + 3) % 70]}quex"
        for number, place in enumerate(places)
    }


def conserved_text(document: ParsedDocument) -> str:
    """All that hippod keeps of a document, in lower case."""
    parts = [document.title, str(document.metadata), *(each.text for each in document.left_out)]
    for passage in document.passages:
        parts += [passage.title, passage.text, str(passage.triples), *(link.target for link in passage.links)]
    return "\n".join(parts).casefold()


def lost_words(data: bytes, file_name: str, words: Words, limits: Limits = DEFAULT_LIMITS) -> list[str]:
    """The places of a file whose words hippod keeps nowhere."""
    kept = "\n".join(
        conserved_text(document) + f"\n{document.error or ''}"
        for document in parse_data(data, file_name.encode(), "file:///f", SplitSettings(), limits)
    )
    return [place for place, word in words.items() if word not in kept]
