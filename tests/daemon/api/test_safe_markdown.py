"""Answers as Markdown: no renderer sends a request or links elsewhere, however the answer is split into pieces."""

import re
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from daemon.api.routes.chat import answer_content, passages_content
from daemon.api.safe_markdown import safe_markdown
from daemon.contract.answering.ask import AskResponse, Citation
from daemon.contract.query import QueryResponse, RankedPassage, Tokens

LINKIFY = find_spec("linkify_it") is not None
"""Whether the renderer can link bare addresses itself; `LINKED` predicts what it would link."""
LINKED = re.compile(
    r"(?:^|[^A-Za-z0-9/:])//[^\s/]|(?:^|[^A-Za-z0-9+.-])(?:ftp|javascript|data|x)://[^\s/]", re.IGNORECASE
)
OWN = ("file:", "kafka:", "added:")


class Permissive(MarkdownIt):
    """Allows links of any scheme."""

    def validateLink(self, url: str) -> bool:
        return True


def renderer() -> MarkdownIt:
    """Returns a renderer with the most permissive settings: HTML, tables, bare addresses, and links of any scheme."""
    made = Permissive("commonmark", {"html": True, "linkify": LINKIFY}).enable(["table", "strikethrough"])
    made.disable("text_join")  # exposes the text that a linkifier gets: escaped characters stay separate tokens
    return made.enable("linkify") if LINKIFY else made


RENDERER = renderer()
PIECES = [
    "!", "[", "]", "(", ")", "<", ">", "/", "//", "\\", "`", "```", "~~~", "\n", "\n\n", " ", "a", ":", "|", "|-|\n", "?",
    "http://", "https://e.org", "HTTPS://e.org/p.png", "mailto:", "ftp://", "javascript:", "data:image/png;base64,", "file:///",
    "kafka://", "//evil.com", "evil.com/p.png", "www.e.org", "&#33;", "&#58;", "&lt;", "&excl;", "&lbrack;", "img src=x", "</",
    "!--", "![", "](", "](<", "[a]", "[a]: ", "[^1]", "*", "_", "'", '"', "> ", "- ", "    ", "\t", "\u200b", "\u00a0", "^",
    "a@b.com", "svg onload=x", "CDATA[", "\r\n", "\x00",
]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=14).map("".join)


def every(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from every(token.children or [])


def assert_harmless(markdown: str, own: tuple[str, ...] = ()) -> None:
    inside = 0
    for token in every(RENDERER.parse(markdown)):
        inside += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        assert token.type not in ("image", "html_block", "html_inline"), markdown
        if token.type == "link_open":
            target = str(token.attrs["href"]).lower()
            assert target.startswith(("http://", "https://", "mailto:", *own)), markdown
        if token.type == "text" and not inside:
            assert not LINKED.search(token.content), markdown


def answered(text: str, title: str, uri: str) -> AskResponse:
    citation = Citation(rank=1, document=uri, title=title, text="x")
    tokens = Tokens(prompt=0, completion=0)
    return AskResponse(question="q", answer=text, citations=[citation], steps=[], tokens=tokens, took_ms=1.0)


@settings(deadline=None)
@given(TEXTS)
def test_no_text_makes_a_renderer_send_a_request(text: str) -> None:
    assert_harmless(safe_markdown(text))


@settings(deadline=None)
@given(TEXTS, st.lists(st.integers(0, 60), max_size=20))
def test_safe_markdown_of_streamed_pieces_is_a_prefix_of_the_whole(text: str, ends: list[int]) -> None:
    sent = ""
    for end in sorted(ends):
        so_far = safe_markdown(text[:end], finished=False)
        assert so_far.startswith(sent)
        sent = so_far
        assert_harmless(sent)
    assert safe_markdown(text).startswith(sent)


@settings(deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(["file:///a/", "kafka://t/", "added:", "javascript:", "x:", "data:,"]), TEXTS)
def test_answer_with_hostile_titles_and_uris_contains_only_safe_links(
    text: str, title: str, scheme: str, rest: str
) -> None:
    content, annotations = answer_content(answered(text, title, scheme + rest))
    assert_harmless(content, OWN)
    assert all(each.url_citation.url.startswith(OWN) for each in annotations)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_passages_with_hostile_text_contain_only_safe_links(text: str, title: str) -> None:
    passage = RankedPassage(rank=1, score=1.0, id="p", title=title, text=text, document="added:x", location={})
    found = QueryResponse(query="q", mode="dense", commit=1, took_ms=1.0, passages=[passage], triples=[], seeds=[])
    assert_harmless(passages_content(found)[0], OWN)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("See ![plan](https://e.org/p.png).", "See \\![plan](https://e.org/p.png)."),
        ("<img src=https://e.org/p.png>", "&lt;img src=https://e.org/p.png>"),
        ("[a](javascript:alert(1))", "[a]\\(javascript:alert(1))"),
        ("[a](https://e.org) and [b](mailto:a@e.org)", "[a](https://e.org) and [b](mailto:a@e.org)"),
        ("[a]: ftp://e.org\n\n![a]", "[a]\\: ftp:\\//e.org\n\n\\![a]"),
        ("1 < 2, a//b, x[1] = [y]! [1]", "1 < 2, a//b, x[1] = [y]! [1]"),
        ("\\![a](http://e.org)", "\\![a](http://e.org)"),
        ("\\\\![a](http://e.org)", "\\\\\\![a](http://e.org)"),
    ],
)
def test_safe_markdown_converts_each_markdown_construct_as_listed(text: str, shown: str) -> None:
    assert safe_markdown(text) == shown


def test_an_image_becomes_a_link_that_a_reader_sees() -> None:
    [paragraph] = [
        token for token in RENDERER.parse(safe_markdown("![plan](https://e.org/p.png)")) if token.type == "inline"
    ]
    kinds = [token.type for token in paragraph.children or []]
    assert "link_open" in kinds and "image" not in kinds
