"""A document's names follow from its URI, title and metadata; numbers and hashes are not names."""

import pytest

from store.lance.schema.documents import passage_refs, passages_text
from store.links.names import document_names, is_meaningful
from store.types import Document, Link, PassageRef


def names(uri, title="", source="/home/u/drive", **metadata):
    return document_names(Document(uri, source, title, metadata=metadata))


def test_a_file_is_called_after_its_stem_title_and_aliases():
    found = names("file:///home/u/drive/Plugins/Search.md", "Finding", aliases=["Find", "Lookup"], alias="Seek")
    assert found.own == ("Finding", "Search", "Find", "Lookup", "Seek")
    assert found.about == ("Plugins",), "the folders above the followed one say nothing"


def test_an_index_file_is_called_after_its_folder():
    found = names("file:///home/u/drive/teams/release/index.md", "Welcome")
    assert found.own == ("Welcome", "release")
    assert found.about == ("teams",)


def test_tags_and_descriptions_are_about_a_document():
    found = names("file:///home/u/drive/a.md", "A", tags="red, green", keywords=["blue"], description="One  line")
    assert found.about == ("red", "green", "blue", "One line")


@pytest.mark.parametrize(
    ("uri", "own"),
    [
        ("file:///home/u/drive/Page%20Name%200123456789abcdef0123456789abcdef.md", ("Page Name",)),
        ("file:///home/u/drive/mail.eml#1/Offer%20X.pdf", ("Offer X",)),
        ("file:///home/u/drive/rows.jsonl#7", ()),
        ("file:///home/u/drive/Zaehler%205571.pdf", ("Zaehler 5571",)),
        ("file:///home/u/drive/v1.2/Release%201.0", ("Release 1.0",)),
        ("file:///home/u/drive/2024-01-05.md", ()),
        ("file:///home/u/drive/a3f9c2d1e4b5.pdf", ()),
        ("file:///home/u/drive/123e4567-e89b-12d3-a456-426614174000.txt", ()),
        ("kafka://topic/Nora", ()),
        ("added:lamp", ()),
    ],
)
def test_uri_gives_the_expected_names(uri, own):
    assert names(uri).own == own


@pytest.mark.parametrize("word", ["facade", "Decade", "cafebabe", "東京", "deadbeef", "5571a"])
def test_words_that_resemble_hex_ids_are_meaningful_names(word):
    assert is_meaningful(word)


def test_passage_column_keeps_links_and_reads_rows_of_older_releases():
    link = Link("../a.md", "Part", "see")
    refs = (
        PassageRef("p", {"line": 1}, (("a", "b", "c"),), "rules", (link,)),
        PassageRef("q", links=(link, Link("b"))),
        PassageRef("r", {}, None, None),
        PassageRef("s", {}, (), "rules"),
    )
    assert passage_refs(passages_text(refs)) == refs
    assert passage_refs('[["p", {}, null], ["q", {}, [["a", "b", "c"]], "rules"]]') == (
        PassageRef("p"),
        PassageRef("q", {}, (("a", "b", "c"),), "rules"),
    )
