"""Recognises the text of one picture with Tesseract, and estimates how certain it is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from consumers.parsing.decoding import clean_text
from consumers.parsing.hyphenation import join_broken_words
from consumers.parsing.limits import Limits
from consumers.parsing.programs.installed import OCR
from consumers.parsing.programs.run import run_program

LEAST_CONFIDENCE = 50.0
"""Minimum mean confidence of a paragraph, in percent. Below it, shapes were mistaken for letters."""
_SEGMENTATION = "1"
"""Tesseract's automatic page segmentation with detection of orientation: it turns a page that lies on its side."""
NICENESS = 19
_LEVEL, _BLOCK, _PARAGRAPH, _LINE, _CONFIDENCE, _TEXT = 0, 2, 3, 4, 10, 11
_WORD = "5"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A recognised paragraph. `confidence` is the mean over its letters, in percent."""

    text: str
    confidence: float

    @property
    def is_certain(self) -> bool:
        return self.confidence >= LEAST_CONFIDENCE


def recognise(image: bytes, limits: Limits, waiting: Callable[[], None]) -> list[Paragraph]:
    """Return the paragraphs of a PNM or PNG image in reading order. Calls `waiting` every few seconds. Raises ProgramFailed."""
    program = limits.programs[OCR]
    command = [program.path, "stdin", "stdout", "-l", "+".join(program.languages), "--psm", _SEGMENTATION, "tsv"]
    # One thread: Tesseract is faster so, and its result does not depend on the machine's load.
    environment = {"OMP_THREAD_LIMIT": "1"}
    output = run_program(
        command, limits, data=image, environment=environment, niceness=NICENESS, waiting=waiting
    )
    return list(_paragraphs(output.decode("utf-8", "replace")))


def _paragraphs(table: str) -> Iterator[Paragraph]:
    rows = [row.split("\t", _TEXT) for row in table.split("\n")[1:]]
    words = [row for row in rows if len(row) > _TEXT and row[_LEVEL] == _WORD and row[_TEXT].strip()]
    for _, group in groupby(words, key=lambda row: (row[_BLOCK], row[_PARAGRAPH])):
        members = list(group)
        lines = (
            " ".join(row[_TEXT].strip() for row in line) for _, line in groupby(members, key=lambda row: row[_LINE])
        )
        letters = sum(len(row[_TEXT].strip()) for row in members)
        confidence = sum(float(row[_CONFIDENCE]) * len(row[_TEXT].strip()) for row in members) / letters
        yield Paragraph(join_broken_words(clean_text("\n".join(lines)), typeset=True), confidence)
