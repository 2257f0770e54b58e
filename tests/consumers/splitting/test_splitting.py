"""Guarantees of splitting: short texts stay whole, nothing is lost, limits hold, titles and places are kept."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.splitting import PlacedLink, SplitSettings, TextBlock, count_tokens, split, split_text
from consumers.splitting.passages import MAX_LINKS
from consumers.splitting.sentences import sentence_starts
from consumers.types import Link

S = SplitSettings()
SMALL = SplitSettings(max_tokens=30, min_tokens=5)
CORPUS = Path(__file__).parents[4] / "shared" / "data" / "musique" / "corpus.json"


def sentences(text: str) -> list[str]:
    starts = [*sentence_starts(text), len(text)]
    return [text[a:b].strip() for a, b in pairwise(starts)]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_a_text_that_fits_stays_one_passage_to_the_letter() -> None:
    text = "  First line.\n\nSecond   paragraph, with odd  blanks.\n"
    (passage,) = split_text(text, "Title", S)
    assert (passage.title, passage.text) == ("Title", text)


@pytest.mark.skipif(not CORPUS.exists(), reason="needs the shared corpus")
def test_every_passage_of_the_musique_corpus_stays_whole() -> None:
    for item in json.loads(CORPUS.read_text()):
        (passage,) = split_text(item["text"], item["title"], S)
        assert (passage.title, passage.text) == (item["title"], item["text"])


@given(
    st.lists(st.tuples(st.sampled_from(["", "A", "A/B", "C"]), st.integers(1, 60)), min_size=1, max_size=8),
    st.integers(8, 40),
)
@settings(max_examples=80, deadline=None)
def test_each_link_is_in_the_passage_with_its_words_and_below_its_heading(shape, limit: int) -> None:
    blocks = []
    for number, (path, size) in enumerate(shape):
        words_in = [f"w{number}x{at}" for at in range(size)]
        headings = tuple(path.split("/")) if path else ()
        text = " ".join(words_in)
        placed = [PlacedLink(text.index(word), Link(word)) for word in words_in[:: 1 + number]]
        above = tuple(Link(f"heading {name}") for name in headings)
        blocks.append(TextBlock(text, headings, links=tuple(placed), heading_links=above))
    passages = split(blocks, "", SplitSettings(limit, min(5, limit)))
    for block in blocks:
        for each in block.links:
            holders = [passage for passage in passages if each.link.target in words(passage.text)]
            assert [passage for passage in passages if each.link in passage.links] == holders, each
            assert all(set(block.heading_links) <= set(passage.links) for passage in holders)
    shown = {link for passage in passages for link in passage.links}
    assert shown == {
        link for block in blocks for link in (*block.heading_links, *(placed.link for placed in block.links))
    }


def test_links_beyond_the_limit_are_dropped() -> None:
    heading = tuple(Link(f"t{number}") for number in range(MAX_LINKS // 2))
    blocks = [TextBlock("word " * 20, ("H",), heading_links=heading) for _ in range(12)]
    passages = split(blocks, "", SMALL)
    assert len(passages) > 2
    assert sum(len(passage.links) for passage in passages) == MAX_LINKS


def test_blank_text_gives_no_passage() -> None:
    assert split_text(" \n\t\n", "T", S) == ()
    assert split([TextBlock("  ")], "T", S) == ()


def test_a_token_is_a_word_a_mark_or_a_cjk_character() -> None:
    assert count_tokens("Don't stop, e.g. at 3.5!") == 14
    assert count_tokens("東京タワー。") == 6
    assert count_tokens("x" * 64) == 2
    assert count_tokens("") == 0


@given(st.text(alphabet="abc dé.,!? \n東。", max_size=2000), st.integers(8, 60))
@settings(max_examples=150, deadline=None)
def test_no_passage_is_too_long_and_no_word_is_lost(text: str, limit: int) -> None:
    passages = split_text(text, "", SplitSettings(limit, min(5, limit)))
    assert all(0 < count_tokens(passage.text) <= limit for passage in passages if count_tokens(text) > 0)
    assert "".join(words("".join(p.text + " " for p in passages))) == "".join(words(text))


def test_passage_titles_contain_title_and_headings() -> None:
    blocks = [
        TextBlock("word " * 60, ("Guide",)),
        TextBlock("more " * 60, ("Guide", "Setup")),
        TextBlock("other " * 60, ("Guide", "Setup", "Linux")),
    ]
    assert [p.title for p in split(blocks, "Guide", S)] == ["Guide", "Guide › Setup", "Guide › Setup › Linux"]
    assert [p.title for p in split(blocks[1:2], "", S)] == ["Guide › Setup"]


def test_adjacent_short_sections_share_a_passage_under_their_common_heading() -> None:
    blocks = [
        TextBlock("Brass tube.", ("Tools", "Telescope")),
        TextBlock("Oak frame.", ("Tools", "Table")),
        TextBlock("long " * 60, ("Tools", "Rest")),
    ]
    first, second = split(blocks, "Yard", S)
    assert first.title == "Yard › Tools"
    assert first.text == "Telescope\nBrass tube.\n\nTable\nOak frame."
    assert second.title == "Yard › Tools › Rest"


def test_a_short_section_between_long_ones_is_a_passage_of_its_own() -> None:
    blocks = [TextBlock("a " * 60, ("A",)), TextBlock("Brief.", ("B",)), TextBlock("c " * 60, ("C",))]
    assert [p.title for p in split(blocks, "", S)] == ["A", "B", "C"]


def test_a_changed_heading_makes_only_its_own_section_anew() -> None:
    def document(heading: str) -> list[TextBlock]:
        return [TextBlock(f"text{n} " * 90, ("Book", heading if n == 3 else f"Chapter {n}")) for n in range(8)]

    before, after = split(document("Chapter 3"), "Book", S), split(document("The Storm"), "Book", S)
    assert [p for p in after if p not in before] == [p for p in after if "The Storm" in p.title]


def test_a_passage_knows_where_it_begins() -> None:
    blocks = [
        TextBlock("one " * 20, ("H",), page=1, line=3),
        TextBlock("two " * 20, ("H",), page=2, line=9),
    ]
    first, second = split(blocks, "T", SMALL)
    assert first.location == {"heading": "H", "page": 1, "line": 3}
    assert second.location == {"heading": "H", "page": 2, "line": 9}
    (row,) = split([TextBlock("a: 1", sheet="Log", row=4)], "", S)
    assert row.location == {"sheet": "Log", "row": 4}


def test_lines_are_counted_inside_a_long_paragraph() -> None:
    text = "\n".join(f"Line number {n} of the log says something new." for n in range(1, 60))
    for passage in split_text(text, "", SMALL):
        number = re.match(r"Line number (\d+)", passage.text)
        assert number and passage.location["line"] == int(number[1])


def test_a_paragraph_is_cut_between_sentences_when_sentences_fit() -> None:
    text = " ".join(f"This is sentence number {n}, which ends here." for n in range(100))
    for passage in split_text(text, "", S):
        assert passage.text.startswith("This is sentence") and passage.text.endswith("here.")


def test_rows_and_items_are_never_cut_apart_when_they_fit() -> None:
    blocks = [TextBlock(f"name: N{n}; role: R{n}", joint="\n") for n in range(200)]
    lines = [line for p in split(blocks, "", SMALL) for line in p.text.split("\n")]
    assert lines == [block.text for block in blocks]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith met J. R. Hill. They left.", ["Dr. Smith met J. R. Hill.", "They left."]),
        ("It cost 3.50 pounds, i.e. Too much. Why?", ["It cost 3.50 pounds, i.e. Too much.", "Why?"]),
        ('"Stop!" she said. "Now." He did.', ['"Stop!" she said.', '"Now."', "He did."]),
        ("早上好。你好吗？很好！", ["早上好。", "你好吗？", "很好！"]),
        (
            "Am 3. Mai kam Dr. Voß, geb. Ilk, z.B. im 19. Jahrhundert.",
            ["Am 3. Mai kam Dr. Voß, geb. Ilk, z.B. im 19. Jahrhundert."],
        ),
        ("He was 23. She was 25.", ["He was 23.", "She was 25."]),
        ("Il Sig. Rossi e la Dott.ssa Neri. Poi via.", ["Il Sig. Rossi e la Dott.ssa Neri.", "Poi via."]),
        ("La Sra. Ruiz (p.ej. Ana) llegó. Luego no.", ["La Sra. Ruiz (p.ej. Ana) llegó.", "Luego no."]),
        ("Mevr. De Vries, d.w.z. Anna, kwam. Klaar.", ["Mevr. De Vries, d.w.z. Anna, kwam.", "Klaar."]),
        ("彼は来た。「もう？」終わり", ["彼は来た。", "「もう？」", "終わり"]),
        ("no stops at all", ["no stops at all"]),
        ("Wait... what? Yes.", ["Wait... what?", "Yes."]),
        ("", []),
    ],
)
def test_sentence_ends_are_recognised(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("unit", ["a", ".", "!?", "你", "word ", "\n", "a.\n", "#"], ids=repr)
def test_millions_of_repeated_characters_take_linear_time(unit: str) -> None:
    # Quadratic time over a million characters would exceed the time limit of the test.
    text = unit * (1_000_000 // len(unit))
    assert all(count_tokens(p.text) <= S.max_tokens for p in split_text(text, "", S))


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="max_tokens is 3"):
        SplitSettings(max_tokens=3)
    with pytest.raises(ValueError, match="min_tokens is 900"):
        SplitSettings(min_tokens=900)
