"""Recognises the text of one picture with Tesseract, and estimates how certain it is."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from consumers.parsing.decoding import clean_text
from consumers.parsing.hyphenation import join_broken_words
from consumers.parsing.limits import Limits
from consumers.parsing.programs.installed import OCR
from consumers.parsing.programs.run import run_program

MIN_CONFIDENCE = 50.0
"""Minimum mean confidence of a paragraph, in percent. With a lower confidence, shapes were mistaken for letters."""
UNCERTAIN = 70.0
"""Mean confidence of a page, in percent, below which the page is read again with detection of the orientation."""
_UPRIGHT, _TURNED = "3", "1"
"""Tesseract's automatic page segmentation without and with detection of the orientation. The detection errs on pages with few
words."""
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
        return self.confidence >= MIN_CONFIDENCE


def recognise(image: bytes, limits: Limits, waiting: Callable[[], None]) -> list[Paragraph]:
    """Returns the paragraphs of a PNM or PNG image, in reading order. Raises ProgramFailed.

    `waiting` is called every few seconds.
    """
    found = _read(image, limits, waiting, _UPRIGHT)
    if mean_confidence(found) >= UNCERTAIN:
        return found
    return max(found, _read(image, limits, waiting, _TURNED), key=mean_confidence)


def mean_confidence(paragraphs: Sequence[Paragraph]) -> float:
    """Returns the mean confidence over all letters, in percent; 0 without letters."""
    letters = sum(len(each.text) for each in paragraphs)
    return sum(each.confidence * len(each.text) for each in paragraphs) / letters if letters else 0.0


def _read(image: bytes, limits: Limits, waiting: Callable[[], None], segmentation: str) -> list[Paragraph]:
    program = limits.programs[OCR]
    command = [program.path, "stdin", "stdout", "-l", "+".join(program.languages), "--psm", segmentation, "tsv"]
    # With one thread, Tesseract is faster, and its result does not depend on the machine's load.
    environment = {"OMP_THREAD_LIMIT": "1"}
    output = run_program(command, limits, data=image, environment=environment, niceness=NICENESS, waiting=waiting)
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
