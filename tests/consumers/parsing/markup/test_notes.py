"""Notes of Obsidian, Logseq and Notion, and pages of wikis: no markup in passages, no word lost, links with their passages."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.omissions import Omissions
from consumers.parsing import parse_file
from consumers.parsing.formats.markup.front_matter import front_matter
from consumers.parsing.formats.markup.html import parse_html
from consumers.parsing.formats.markup.markdown import parse_markdown
from consumers.parsing.limits import Limits
from consumers.splitting import SplitSettings, split
from consumers.types import ParsedDocument, Passage


def parsed(text: str, reader: Any = parse_markdown) -> tuple[list[Passage], dict[str, Any], str]:
    found = reader(text.encode(), Limits(), Omissions())
    return list(split(found.blocks, found.title, SplitSettings())), dict(found.metadata), found.title


def text_of(markdown: str) -> str:
    return "\n\n".join(passage.text for passage in parsed(markdown)[0])


def links_of(markdown: str, reader: Any = parse_markdown) -> list[tuple[str, str, str]]:
    passages, _, _ = parsed(markdown, reader)
    return [(link.target, link.heading, link.text) for passage in passages for link in passage.links]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("![Figure 3](x.png)", "Figure 3"),
        ("![Map of 1850|300x200](m.png)", "Map of 1850"),
        ("Plan ![100](x.png)", "Plan"),
        ("See [[Year 2024|2024]] and [[Chapter Seven|7]].", "See 2024 and 7."),
        ("See ![[plan.png|Plan 9|100]].", "See Plan 9."),
    ],
)
def test_only_the_size_of_a_picture_is_left_out_of_its_label(markdown: str, text: str) -> None:
    assert text_of(markdown).strip() == text


@pytest.mark.parametrize(
    ("markdown", "text", "links"),
    [
        ("See [[Sync]].", "See Sync.", [("Sync", "", "Sync")]),
        ("See [[Sync#Fees|the fees]].", "See the fees.", [("Sync", "Fees", "the fees")]),
        ("See [[Guides/Sync#A#B]].", "See Guides/Sync B.", [("Guides/Sync", "B", "Guides/Sync B")]),
        ("See [[Sync#^a1b2]].", "See Sync.", [("Sync", "^a1b2", "Sync")]),
        ("Up: [[#Fees]] here.", "Up: Fees here.", []),
        ("Look ![[Sync#Fees]] up.", "Look Sync Fees up.", [("Sync", "Fees", "Sync Fees")]),
        ("A ![[lamp.png]] lamp ![[lamp.svg#icon]].", "A  lamp .", []),
        ("A ![[lamp.png|Brass lamp|300]] and ![Oak|300x200](oak.jpg).", "A Brass lamp and Oak.", []),
        ("Plan: ![[Offer.pdf]]", "Plan: Offer.pdf", [("Offer.pdf", "", "Offer.pdf")]),
        ("`[[Code]]` stays", "[[Code]] stays", []),
        ("| A | B |\n|-|-|\n| [[Sync\\|s]] | 2 |", "A: s; B: 2", [("Sync", "", "s")]),
        (
            "[a](../x%20y.md#p 'T') <https://h.example/p>",
            "a https://h.example/p",
            [("../x%20y.md", "p", "a"), ("https://h.example/p", "", "https://h.example/p")],
        ),
        ("[a][r] [r]\n\n[r]: /hand/book/", "a r", [("/hand/book/", "", "a"), ("/hand/book/", "", "r")]),
        (
            'An <a class="x" href="d.html?a=1&amp;b=2#q">old *page*</a>.',
            "An old page.",
            [("d.html?a=1&b=2", "q", "old page")],
        ),
        ("<p>An <a href='d.html'>old page</a></p>", "An  old page", [("d.html", "", "old page")]),
        ("[mail](mailto:a@b.c) [top](#top) ![p](p.png) [ref](((62a1)))", "mail top p ref", []),
        ("- a\n- b [[C]]", "- a\n- b C", [("C", "", "C")]),
        ("Very ==bright *star*== and a == b, c==d.", "Very bright star and a == b, c==d.", []),
        ("Seen %%by no reader%% now\n\n%%\nA whole block\n%%", "Seen by no reader now\n\nA whole block", []),
        ("> [!tip]- Look out\n> Wet paint\n\n> [!warning]\n> Ice", "Look out\nWet paint\n\nIce", []),
        ("A claim. ^claim-1\n\n2 ^2 x\n\n- item ^6f2a1b", "A claim.\n\n2 ^2 x\n\n- item", []),
        ("3. three\n4. four\n   - sub\n\n1) one", "3. three\n4. four\n- sub\n\n1) one", []),
        ("I don't, you can't.", "I don't, you can't.", []),
        (
            "Fare:: 12 euros [due:: 2024-01-05] (by:: Ann) std::vector",
            "Fare: 12 euros due: 2024-01-05 by: Ann std::vector",
            [],
        ),
        ("- Block\n  id:: 62a1b2c3-0000-4000-8000-000000000000\n  collapsed:: true\n- Two", "- Block\n- Two", []),
        ("See ((62a1b2c3-0000-4000-8000-000000000000)) {{embed [[Part]]}}", "See  Part", [("Part", "", "Part")]),
        ("```dataview\nLIST FROM #lamp\n```", "LIST FROM #lamp", []),
    ],
)
def test_note_markup_gives_the_expected_text_and_links(
    markdown: str, text: str, links: list[tuple[str, str, str]]
) -> None:
    found = "\n".join(line.rstrip() for line in text_of(markdown).split("\n"))
    assert "\n".join(line for line in found.split("\n\n") if line) == "\n".join(text.split("\n\n"))
    assert links_of(markdown) == links


@pytest.mark.parametrize(
    "text",
    [
        "id:: 17 and more",
        "collapsed:: true",
        "std:: vector (see Foo::bar)",
        "Use the pattern ^abc",
        "50%% sure, 60%% certain",
        "for %%i in (1) do echo %%i",
        "{% set x = {{ a }} %}",
    ],
)
def test_other_markdown_is_no_note(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text(text)
    [document] = [
        each for each in parse_file(bytes(file), file.as_uri(), SplitSettings()) if isinstance(each, ParsedDocument)
    ]
    assert ([passage.text for passage in document.passages], document.left_out) == ([text], ())


def test_properties_of_a_note_with_other_values_are_text() -> None:
    assert text_of("[[Home]]\n\nid:: 17 and more") == "Home\n\nid: 17 and more"


def test_a_link_with_brackets_is_no_wikilink() -> None:
    markdown = "See [[1]](https://h.example/p), [[Sync]](the app) and [[Sync|apps]](https://h.example)."
    assert text_of(markdown) == "See [1], Sync(the app) and apps(https://h.example)."
    assert links_of(markdown) == [("https://h.example/p", "", "[1]"), ("Sync", "", "Sync"), ("Sync", "", "apps")]


def test_an_escaped_sign_begins_no_tag() -> None:
    passages, metadata, _ = parsed(r"A \#sign and a #tag.")
    assert ([passage.text for passage in passages], metadata) == (["A #sign and a #tag."], {"tags": ["tag"]})


def test_a_link_in_a_heading_belongs_to_every_passage_below_it() -> None:
    long = "\n\n".join(f"Sentence {number} about the images of this team, " + "word " * 60 for number in range(20))
    passages, _, _ = parsed(
        f"# Teams\n\nIntro {'word ' * 50}\n\n## [Delivery](../release/index.md)\n\n{long}\n\n# End\n\nBye {'w ' * 50}"
    )
    targets = [[link.target for link in passage.links] for passage in passages]
    assert len(passages) > 4
    assert targets == [[], *[["../release/index.md"]] * (len(passages) - 2), []]


def test_html_gives_the_links_of_its_content() -> None:
    page = """<html><head><link rel="canonical" href="https://h.example/x"></head><body>
        <h1>Top <a href="up.html">Up</a></h1><p>One <a href="a.html#f">first <b>page</b></a>, two.</p>
        <a href="b.html"><div>Card</div><div>More</div></a><table><tr><th>N</th><th>M</th></tr>
        <tr><td>1</td><td><a href="t.html">Cell</a></td></tr></table><nav><a href="n.html">Nav</a></nav></body></html>"""
    assert links_of(page, parse_html) == [
        ("up.html", "", "Up"),
        ("a.html", "f", "first page"),
        ("b.html", "", "Card"),
        ("t.html", "", "Cell"),
    ]
    assert parsed(page, parse_html)[1]["canonical"] == "https://h.example/x"


@pytest.mark.parametrize(
    ("markdown", "title"),
    [
        ("# Lamps\n\ntext\n\n# More\n\nx", "Lamps"),
        ("## Prerequisites\n\ntext\n\n## Steps\n\nx", ""),
        ("## Lamps\n\ntext\n\n### Steps\n\nx", "Lamps"),
        ("Intro.\n\n# Lamps\n\ntext", ""),
        ("---\ntitle: Named\n---\n# Lamps\n\ntext", "Named"),
        ("title:: Named\n\n- text", "Named"),
    ],
)
def test_title_comes_from_front_matter_or_a_single_top_heading(markdown: str, title: str) -> None:
    assert parsed(markdown)[2] == title


def test_a_page_without_a_title_has_the_name_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "Analytics.md"
    file.write_text("## Prerequisites\n\ntext\n\n## Steps\n\nx")
    [document] = [
        each for each in parse_file(bytes(file), file.as_uri(), SplitSettings()) if isinstance(each, ParsedDocument)
    ]
    assert document.title == "Analytics"


def test_tags_and_properties_are_metadata() -> None:
    text = (
        "---\naliases: [Hall, 'The hall']\ntags:\n  - old\nsummary: >\n  Two\n  lines\nup: '[[Home]]'\n---\n"
        "Body #house/red #1 a#b."
    )
    passages, metadata, _ = parsed(text)
    assert metadata["tags"] == ["old", "house/red"]
    assert (metadata["aliases"], metadata["summary"]) == (["Hall", "The hall"], "Two lines\n")
    assert [(link.target, link.text) for link in passages[0].links] == [("Home", "")]
    logseq = parsed("alias:: Hall, Foyer\ntags:: [[House]], #red\n\n- Body")
    assert logseq[1] == {"alias": ["Hall", "Foyer"], "tags": ["House", "red"]}
    assert [passage.text for passage in logseq[0]] == ["- Body"]


@pytest.mark.parametrize(
    "block",
    [
        "Prose between rules.\nNote: a line with a colon\n",
        "- a\n- b\n",
        "just words\n",
        "Key: value\nand then prose\n",
        "a: *b\nprose\n",
    ],
)
def test_front_matter_that_is_no_mapping_is_text(block: str) -> None:
    text = f"---\n{block}---\nBelow"
    assert front_matter(text, Omissions()) == ({}, text, 0)


def test_front_matter_of_key_value_lines_is_accepted_although_invalid_yaml() -> None:
    found, body, above = front_matter(
        "---\ntitle: Berlin: a visit\ntags: [a, b]\n# note\nlist:\n  - x\n---\nBelow", Omissions()
    )
    assert found == {"title": "Berlin: a visit", "tags": ["a", "b"], "list": ["x"]}
    assert (body, above) == ("Below", 7)


def test_aliases_of_yaml_are_refused() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{n}: &{n} [*{p}, *{p}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True))
    found, _, _ = front_matter(f"---\n{bomb}---\nBelow", Omissions())
    assert len(json.dumps(found)) < 1000


word = st.sampled_from(["lamp", "don't", "Ann", "Über", "東京", "3.5", "x_y"])
words = st.lists(word, min_size=1, max_size=3).map(" ".join)
piece = st.one_of(
    words,
    words.map("[[{}]]".format),
    st.tuples(words, words).map(lambda both: f"[[{both[0]}|{both[1]}]]"),
    words.map("=={}==".format),
    words.map("%%{}%%".format),
    words.map("**{}**".format),
    words.map("[{}](a.md)".format),
    words.map("((not {}))".format),
)
line = st.tuples(
    st.sampled_from(["", "- ", "1. ", "> ", "> [!tip] ", "## ", "- [ ] "]), st.lists(piece, min_size=1, max_size=3)
).map(lambda parts: parts[0] + " ".join(parts[1]))


@given(st.lists(st.tuples(line, st.sampled_from(["\n", "\n\n"])), min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_notes_keep_every_word_and_no_markup(lines: list[tuple[str, str]]) -> None:
    found = "\n".join(f"{passage.title}\n{passage.text}" for passage in parsed("".join(map("".join, lines)))[0])
    for each in ("[[", "]]", "%%"):
        assert each not in found
    shown = [part for text, _ in lines for part in text.replace("]]", "[[").split("[[")]
    for part in (each.partition("|")[2] or each for each in shown):
        for each in part.split():
            if each.strip("=%*[]()#>-").isalpha() and "](" not in each and "!" not in each:
                assert each.strip("=%*[]()#>-") in found


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["==a ", "%%", "{{embed ", "((", "#1", "a:: ", "^a "])
def test_repeated_markup_does_not_slow_down_parsing(piece: str) -> None:
    passages, _, _ = parsed("x " + piece * 5000)
    assert passages
