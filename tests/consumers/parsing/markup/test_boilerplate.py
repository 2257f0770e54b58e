"""What is left out of an HTML page, by its own markup alone: navigation, contents tables, permalinks, headers and footers."""

import pytest

from consumers.omissions import Omissions
from consumers.parsing.formats.markup.html import parse_html
from consumers.parsing.limits import Limits

PROSE = "Mara Quill repaired the seismograph before the autumn expedition set out."


def text_of(body: str) -> str:
    """The blocks of a page with this body, one a line."""
    page = f"<!doctype html><html><head><title>T</title></head><body>{body}</body></html>"
    return "\n".join(block.text for block in parse_html(page.encode(), Limits(), Omissions()).blocks)


LEFT_OUT = {
    "navigation role": '<div role="navigation"><ul><li><a href="a.html">index</a> | modules</li></ul></div>',
    "search role": '<div role="search">Quick search</div>',
    "nav": "<nav>Menu</nav>",
    "DocBook's bar": '<div class="navheader"><table><tr><td>Prev</td><th>Chapter 4. Tides</th><td>Next</td></tr></table></div>',
    "Publican's bar": '<ul class="docnav"><li><a href="x.html"><strong>Prev</strong></a></li><li>The Handbook</li></ul>',
    "steps by rel": '<p>Next: <a rel="next" href="b.html">Tides</a>, Up: <a rel="up" href="c.html">Top</a></p>',
    "steps by access keys": '<table><tr><td><a accesskey="p" href="a.html">Prev</a></td><td>Tides</td>'
    '<td><a accesskey="n" href="b.html">Next</a></td></tr></table>',
    "contents by name": '<div class="toc"><p>Table of Contents</p><dl><dt>1. <a href="ch1.html#a">Tides</a></dt></dl></div>',
    "contents by role": '<section role="doc-toc"><h2>Contents</h2><ol><li><a href="a.html">Tides</a></li></ol></section>',
    "contents by links": '<ul><li><a href="#a">One</a></li><li><a href="#b">Two</a></li><li><a href="#c">Three</a></li></ul>',
    "sidebar of links": '<div class="left-sidebar"><a href="a.html">Archive</a> <a href="b.html">About us</a> more</div>',
    "aside of links": '<aside><h3>Recent</h3><a href="a.html">Archive</a> <a href="b.html">About us</a></aside>',
    "breadcrumbs": '<ol class="breadcrumb"><li><a href="/">Home</a></li><li>Tides</li></ol>',
    "footer": "<footer>© Tarn Society. Created by a program.</footer>",
    "footer by name": '<div class="footer">© Tarn Society. Created by a program.</div>',
}


@pytest.mark.parametrize("block", LEFT_OUT.values(), ids=LEFT_OUT)
def test_boilerplate_is_left_out(block: str) -> None:
    assert text_of(f"{block}<h1>Tides</h1><p>{PROSE}</p>{block}") == PROSE


KEPT = {
    "a sidebar of prose, as DocBook has": '<div class="sidebar"><p>The gauge was built in 1911.</p></div>',
    "a footer of an article": "<article><p>Words.</p><footer>The gauge was built in 1911.</footer></article>",
    "a list of links to other pages": '<ul><li><a href="a">One</a><li><a href="b">Two</a><li><a href="c">1911</a></ul>',
    "a link in prose": '<p>See the <a rel="next" href="b.html">gauge</a> that was built by the Tarn company in 1911.</p>',
    "a footnote that is a link": '<section><aside><p><a href="http://a.b/">The gauge of 1911</a></p></aside></section>',
    "prose with marks": '<p>The gauge (¶ 4) was <a href="#b">built</a> in 1911.</p>',
    "a table named by chance": '<div class="table-contents"><table><tr><th>part<th>year<tr>'
    '<td><a href="g.html">gauge</a><td>1911</table></div>',
    "a heading that leads back": '<h2><a role="doc-backlink" class="toc-backref" href="#id1">Built in 1911</a></h2>',
    "chapters in place of their list, as on Sphinx's single page": '<div class="toctree-wrapper"><section><h2>Gauge'
    '<a class="headerlink" href="#gauge">¶</a></h2><p>It was built in 1911.</p></section></div>',
    "a page's header with its heading": "<header><h1>The gauge of 1911</h1></header>",
}


@pytest.mark.parametrize("block", KEPT.values(), ids=KEPT)
def test_content_that_resembles_boilerplate_is_kept(block: str) -> None:
    page = f"<html><body><p>{PROSE}</p>{block}<p>{PROSE}</p></body></html>"
    read = parse_html(page.encode(), Limits(), Omissions()).blocks
    assert "1911" in "\n".join(" ".join((*each.headings, each.text)) for each in read)
    assert sum(each.text == PROSE for each in read) == 2


def test_permalinks_are_no_part_of_headings_and_titles() -> None:
    page = (
        "<html><head><title>Tides — Tarn 3.1 documentation</title></head>"
        '<body><h1>Tides<a class="headerlink" href="#tides">¶</a></h1>'
        '<h2>High<a href="#high" title="Link">#</a></h2><p>At noon.</p></body></html>'
    )
    read = parse_html(page.encode(), Limits(), Omissions())
    assert read.title == "Tides"
    assert [(block.headings, block.text) for block in read.blocks] == [(("Tides", "High"), "At noon.")]


def test_only_the_main_element_of_a_page_is_parsed() -> None:
    assert text_of(f"<div>Quill Instruments</div><main><p>{PROSE}</p></main>Call us today") == PROSE
    assert text_of(f'<div>Quill Instruments</div><div role="main"><p>{PROSE}</p></div>') == PROSE


def test_empty_or_repeated_main_elements_are_ignored() -> None:
    assert text_of(f"<main></main><p>{PROSE}</p>") == PROSE
    assert text_of("<main>one</main><main>two</main>") == "one\ntwo"


def test_page_that_consists_of_a_table_of_contents_keeps_it() -> None:
    contents = (
        '<div class="toctree-wrapper"><ul><li><a href="a">Tides</a></li><li><a href="b">Gauges</a></li></ul></div>'
    )
    assert text_of(f"<nav>Menu</nav><h1>Book</h1>{contents}") == "- Tides\n- Gauges"


def test_code_beside_its_line_numbers_keeps_its_lines() -> None:
    code = (
        '<table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre></td>'
        '<td class="code"><pre>def tide():\n    return 4</pre></td></tr></table>'
    )
    assert text_of(f"<p>{PROSE}</p>{code}") == f"{PROSE}\ndef tide():\n    return 4"


def test_layout_table_is_parsed_as_page_content() -> None:
    page = f"<table><tr><td><h1>Tides</h1><p>{PROSE}</p></td><td><p>The gauge stands in Tarn.</p></td></tr></table>"
    read = parse_html(page.encode(), Limits(), Omissions())
    assert [(block.headings, block.text) for block in read.blocks] == [
        (("Tides",), PROSE),
        (("Tides",), "The gauge stands in Tarn."),
    ]


def test_page_with_an_invalid_link_keeps_its_text() -> None:
    assert text_of(f'<p><a href="http://[">{PROSE}</a></p>') == PROSE
