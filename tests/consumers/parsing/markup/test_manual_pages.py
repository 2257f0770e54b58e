"""Pages of a manual as its generators write them, in our own words: only what somebody wrote to be read becomes passages."""

import pytest

from consumers.parsing import parse_data
from consumers.splitting import SplitSettings

S = SplitSettings(max_tokens=400, min_tokens=0)
GAUGE = "The gauge is read at noon and at midnight, by whoever keeps the light."
BUOY = "A buoy that has come loose is reported to the harbour at once."

SPHINX = f"""<!DOCTYPE html>
<html lang="en"><head><title>gauge — Reading the tide &#8212; Tarn 3.1 documentation</title></head><body>
<div class="mobile-nav"><nav class="menu" role="navigation"><h3><a href="../contents.html">Table of Contents</a></h3>
<ul><li><a href="#">gauge</a></li><li><a href="#high">High water</a></li></ul></nav></div>
<div class="related" role="navigation"><h3>Navigation</h3><ul><li><a href="i.html" accesskey="I">index</a></li>
<li><a href="b.html" accesskey="N">next</a> |</li><li><a href="a.html" accesskey="P">previous</a> |</li></ul></div>
<div class="document"><div class="body" role="main"><section id="gauge">
<h1><code>gauge</code> — Reading the tide<a class="headerlink" href="#gauge" title="Permalink">¶</a></h1><p>{GAUGE}</p>
<div class="contents local topic"><ul><li><a href="#high">High water</a></li><li><a href="#low">Low</a></li><li>
<a href="#x">X</a></li></ul></div>
<section id="high"><h2><a class="toc-backref" role="doc-backlink" href="#id1">High water</a>
<a class="headerlink" href="#high">¶</a></h2>
<dl><dt id="d"><code>depth</code>(<em>path</em>)<a class="headerlink" href="#d">¶</a></dt><dd><p>{BUOY}</p></dd></dl>
<table><thead><tr><th>part</th><th>year</th></tr></thead><tbody><tr><td>gauge</td><td>1911</td></tr></tbody></table>
<div class="highlight"><pre><span>x</span> = 1
y = 2</pre></div></section></section></div></div>
<div class="sphinxsidebar" role="navigation"><h4>Previous topic</h4><p><a href="a.html">Buoys</a></p><h3>This Page
</h3></div>
<div class="footer">&copy; Copyright 2026, Tarn Society. Created using Sphinx.</div></body></html>"""

DOCBOOK = f"""<?xml version="1.0" encoding="UTF-8"?>
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Chapter 4. Tides</title></head><body>
<div class="navheader"><table summary="Navigation header"><tr><th colspan="3">Chapter 4. Tides</th></tr><tr>
<td><a accesskey="p" href="c3.html">Prev</a></td><th> </th><td><a accesskey="n" href="c5.html">Next</a></td></tr>
</table><hr/></div>
<div class="chapter"><div class="titlepage"><h1 class="title"><a id="t"/>Chapter 4. Tides</h1></div>
<div class="toc"><p><strong>Table of Contents</strong></p><dl><dt><a href="c4.html#high">4.1. High water</a></dt>
</dl></div>
<div class="section"><div class="titlepage"><h2 class="title">4.1. High water</h2></div><p>{GAUGE}</p>
<div class="sidebar"><p class="title"><strong>In short</strong></p><p>{BUOY}</p></div></div></div>
<div class="navfooter"><hr/><table><tr><td><a accesskey="p" href="c3.html">Prev</a></td><td>
<a accesskey="h" href="i.html">Home</a></td>
<td>Chapter 5. Buoys</td></tr></table></div></body></html>"""

WEBSITE = f"""<html><head><title>Tides | Tarn Society</title></head><body class="has-sidebar">
<header><div class="site-header"><a href="/">Tarn Society</a></div><ul class="menu"><li><a href="/a">Tides</a><li>
<a href="/b">Buoys</a></ul></header>
<div class="left-nav"><a href="/a">Tides</a><a href="/b">Buoys</a><a href="/c">Lights</a></div>
<article><header><h1>Tides</h1></header><p>{GAUGE}</p><aside><p>{BUOY}</p></aside></article>
<aside class="related"><h3>Read on</h3><a href="/b">Buoys</a><a href="/c">Lights</a></aside>
<footer>Tarn Society, 1 Harbour Road. <a href="/privacy">Privacy</a></footer></body></html>"""

PAGES = {
    "Sphinx": (
        SPHINX,
        [
            ("gauge — Reading the tide", GAUGE),
            (
                "gauge — Reading the tide › High water",
                f"depth(path)\n{BUOY}\n\npart: gauge; year: 1911\n\nx = 1\ny = 2",
            ),
        ],
    ),
    "DocBook": (DOCBOOK, [("Chapter 4. Tides › 4.1. High water", f"{GAUGE}\n\nIn short\n\n{BUOY}")]),
    "a website": (WEBSITE, [("Tides", f"{GAUGE}\n\n{BUOY}")]),
}


@pytest.mark.parametrize(("page", "passages"), PAGES.values(), ids=PAGES)
def test_manual_page_gives_the_passages_of_its_content(page: str, passages: list[tuple[str, str]]) -> None:
    (document,) = parse_data(page.encode(), b"page.html", "u", S)
    assert [(each.title, each.text) for each in document.passages] == passages
