"""What is read of man pages, reStructuredText, LaTeX, Org, XML, notebooks and source code."""

import json
from pathlib import Path

import pytest

from consumers.parsing import parse_data
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

S = SplitSettings(max_tokens=400, min_tokens=0)


def read(name: str, data: str | bytes) -> ParsedDocument:
    content = data.encode() if isinstance(data, str) else data
    (document,) = parse_data(content, name.encode(), f"file:///{name}", S)
    return document


def texts(document: ParsedDocument) -> list[tuple[str, str]]:
    assert document.error is None
    return [(passage.title, passage.text) for passage in document.passages]


MAN = r""".\" A comment
.TH GAUGE 1 2026-05-04 "Tarn 3.1" "Tide Manual"
.ie n .ds -- \-
.el .ds -- \(em
.de XX
no text
..
.SH NAME
gauge \- reads a tide gauge
.SH SYNOPSIS
.B gauge
.RB [ \-v ]
.I file
.SH DESCRIPTION
The
.BR gauge (1)
command reads \fIone\fP gauge,
.if t in a typesetter's words,
caf\['e]s \*(-- and all.
.TP
.B \-v
Says more.
.IP \(bu 2
first
.SS "High water"
.nf
x = 1
  y = 2
.fi
.TS
tab(	);
l l.
part	year
gauge	1911
.TE
"""


def test_man_page_keeps_sections_and_items() -> None:
    document = read("gauge.1", MAN)
    assert document.title == "gauge(1)"
    assert document.metadata == {
        "format": "man",
        "section": "1",
        "date": "2026-05-04",
        "source": "Tarn 3.1",
        "manual": "Tide Manual",
        "published_at": "2026-05-04T00:00:00+00:00",
    }
    assert texts(document) == [
        ("gauge(1) › Name", "gauge - reads a tide gauge"),
        ("gauge(1) › Synopsis", "gauge [-v] file"),
        (
            "gauge(1) › Description",
            "The gauge(1) command reads one gauge, cafe\u0301s - and all.\n\n-v\nSays more.\n- first",
        ),
        ("gauge(1) › Description › High water", "x = 1\n  y = 2\n\npart: gauge; year: 1911"),
    ]


def test_mdoc_page_keeps_sections_and_items() -> None:
    page = (
        ".Dd May 4, 2026\n.Dt GAUGE 1\n.Os\n.Sh NAME\n.Nm gauge\n.Nd reads a tide gauge\n.Sh SYNOPSIS\n"
        ".Nm\n.Op Fl v\n.Ar file ...\n"
        ".Sh DESCRIPTION\nThe\n.Nm\nutility reads\n.Pa /dev/gauge ,\nsee\n.Xr tide 5 .\n.Bl -tag -width "
        "x\n.It Fl v\nSays more.\n.El\n"
    )
    assert texts(read("gauge.1", page)) == [
        ("gauge(1) › Name", "gauge – reads a tide gauge"),
        ("gauge(1) › Synopsis", "gauge [-v] file ..."),
        ("gauge(1) › Description", "The gauge utility reads /dev/gauge, see tide(5).\n\n-v\nSays more."),
    ]


def test_man_page_alias_is_skipped_and_log_with_the_ending_1_is_text() -> None:
    other = read("depth.3", ".so man3/gauge.3\n")
    assert other.skipped and "man3/gauge.3" in (other.error or "")
    assert read("syslog.1", "The gauge was read at noon.").metadata["format"] == "text"


def test_restructured_text_with_sphinx_directives_is_parsed() -> None:
    source = (
        ".. _top:\n\n=====\nTides\n=====\n\n.. toctree::\n\n   other\n\nSee :func:`~gauge.read`, "
        ":ref:`the map <map>` and `a link <http://x>`_.\n\n"
        ".. function:: gauge.write(depth)\n   :module: gauge\n\n   Writes it.\n\n   .. versionadded:: 3.1\n\n"
        "High water\n==========\n\n- one\n- two\n\nterm\n   Its meaning.\n\n=====  =====\npart   year\n"
        "=====  =====\ngauge  1911\n=====  =====\n\n"
        ".. code-block:: python\n\n   x = 1\n\n.. comment\n"
    )
    assert texts(read("a.rst", source)) == [
        ("Tides", "See read, the map and a link.\n\ngauge.write(depth)\n\nWrites it.\n\n3.1"),
        ("Tides › High water", "- one\n- two\n\nterm\nIts meaning.\n\npart: gauge; year: 1911\n\nx = 1"),
    ]


def test_restructured_text_includes_no_file_and_no_raw_markup(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret words")
    source = f"Tides\n=====\n\nHere.\n\n.. include:: {secret}\n.. literalinclude:: {secret}\n"
    source += f".. raw:: html\n   :file: {secret}\n\n"
    source += f".. csv-table::\n   :file: {secret}\n"
    assert texts(read("a.rst", source)) == [("Tides", "Here.")]


def test_sphinx_metadata_and_the_ending_rst_txt_are_not_text() -> None:
    document = read("a.rst.txt", ":orphan:\n\nTides\n=====\n\nThe :ref:`gauge <g>` stands.\n")
    assert document.title == "Tides" and texts(document) == [("Tides", "The gauge stands.")]
    assert [(each.kind, each.text) for each in document.left_out] == [("metadata", "1 header or property: orphan")]


def test_roles_defined_in_one_text_do_not_affect_the_next() -> None:
    source = "Tides\n=====\n\nA :gauge:`brass gauge` of :emphasis:`old`.\n"
    first = texts(read("a.rst", source))
    hidden = "".join(f".. role:: {name}(raw)\n   :format: html\n\n" for name in ("gauge", "emphasis"))
    hidden += ".. default-role:: gauge\n\n"
    read("b.rst", hidden + "Some words `here`.")
    assert first == [("Tides", "A brass gauge of old.")]
    assert texts(read("a.rst", source)) == first


def test_latex_is_parsed_as_printed() -> None:
    source = (
        r"\documentclass{article}\title{The \emph{Tarn} Survey}\author{Mara}\begin{document}\maketitle"
        "\n"
        r"\section{Gauges}\label{g} The gauge~\cite{a} stands at $x^2$, na\"ively\footnote{A note.}. % no"
        "\n\n"
        r"\begin{itemize}\item one \item two\end{itemize}\begin{tabular}{ll}part & year \\ \hline gauge & 1911\end{tabular}"
        r"\subsection*{High}After.\begin{verbatim}x & y\end{verbatim}\end{document} never"
    )
    document = read("a.tex", source)
    assert document.metadata == {"format": "latex", "author": "Mara"}
    assert texts(document) == [
        (
            "The Tarn Survey › Gauges",
            "The gauge stands at x^2, naïvely (A note.).\n\n- one\n- two\n\npart: gauge; year: 1911",
        ),
        ("The Tarn Survey › Gauges › High", "After.\n\nx & y"),
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            r"\caption{Results of the tests}\begin{tabular}{ll} Name & Value \\ \hline alpha & 1 \\ \end{tabular}",
            ["Results of the tests", "Name: alpha; Value: 1"],
        ),
        (
            "A survey of\n\\begin{tabularx}{5cm}{lX}\nName &\n Value \\\\[2pt]\n\nalpha &\n 1 \\\\ \\end{tabularx} follows.",
            ["A survey of", "Name: alpha; Value: 1", "follows."],
        ),
        (
            r"\begin{longtable}{ll}\caption{Results}\\ \multicolumn{2}{c}{Both}\\ \cmidrule(lr){1-2} Name & Value \\ \endhead"
            r" \multirow{2}{*}{alpha} & \begin{tabular}{l}1 \\ 2\end{tabular} \\ \end{longtable}",
            ["Results", "Both", "Name: alpha; Value: 1 2"],
        ),
        (r"We see \begin{align} a &= b \\ c &= d \end{align}", ["We see\na = b\nc = d"]),
    ],
)
def test_tables_of_latex_keep_their_columns_names(source: str, expected: list[str]) -> None:
    document = read("a.tex", f"\\begin{{document}}{source}\\end{{document}}")
    [(_, text)] = texts(document)
    assert text.split("\n\n") == expected


def test_states_of_org_s_tasks_are_kept_or_reported() -> None:
    document = read("a.org", "* TODO [#A] Gauges\n- [ ] oil\n")
    assert texts(document) == [("Gauges", "- [ ] oil")]
    assert [each.text for each in document.left_out] == ["1 header or property: TODO [#A]"]


def test_org_is_parsed_without_drawers_and_planning() -> None:
    source = (
        "#+TITLE: Tide /log/\n#+AUTHOR: Mara\nWith [[http://x][a link]] and *bold* words.\n\n* TODO "
        "[#A] Gauges :sea:\n:PROPERTIES:\n:ID: x\n"
        ":END:\nSCHEDULED: <2026-01-01>\nText one\nline two.\n- item\n- [X] done\n** High\n| part | "
        "year |\n|------+------|\n| gauge | 1911 |\n"
        "#+BEGIN_SRC python\nx = 1\n#+END_SRC\n# comment\nAfter.\n"
    )
    document = read("a.org", source)
    assert document.metadata == {"format": "org", "author": "Mara", "tags": ["sea"]}
    assert texts(document) == [
        ("Tide log", "With a link and bold words."),
        ("Tide log › Gauges", "Text one\nline two.\n- item\n- [X] done"),
        ("Tide log › Gauges › High", "part: gauge; year: 1911\n\nx = 1\n\nAfter."),
    ]


def test_restructured_text_lists_keep_their_numbers() -> None:
    [(_, text)] = texts(
        read("a.rst", "#. one\n#. two\n\nText.\n\n3) three\n4) four\n\nText.\n\nb. bee\nc. see\n\n* dot\n")
    )
    assert [line for line in text.split("\n") if line and line != "Text."] == [
        "1. one", "2. two", "3) three", "4) four", "b. bee", "c. see", "- dot",
    ]  # fmt: skip


def test_docutils_messages_are_not_part_of_the_text() -> None:
    rows = "=====  =====\nName   Role\n=====  =====\nAnn    Chair\n...    ...\nBo     `Aide\n=====  =====\n"
    [(_, text)] = texts(read("a.rst", f"Who is who in the old mill:\n\n{rows}\n- Item\n\n  ---\n"))
    assert "Ann" in text and "Aide" in text
    assert not [word for word in ("Unexpected", "INFO", "WARNING", "interpreted") if word in text]


def test_special_characters_of_man_pages_are_decoded() -> None:
    page = b".TH GAUGE 1\n.SH NAME\ngauge \\- reads\n.SH SUM\n\\[*a] \\[AN] \\(*W \\[tmu] \\[u2208]\n"
    [document] = parse_data(page, b"gauge.1", "file:///gauge.1", SplitSettings())
    assert "α ∧ Ω × ∈" in document.passages[-1].text


def test_xml_elements_give_headings_and_text() -> None:
    source = (
        '<?xml version="1.0"?><book><title>Tides</title><info><isbn>1911</isbn><year>2026</year></info>'
        "<chapter><title>Gauges</title>"
        "<para>The <emphasis>gauge</emphasis> stands.</para><programlisting>x = 1\n  y = "
        "2</programlisting></chapter></book>"
    )
    assert texts(read("a.xml", source)) == [
        ("Tides", "isbn: 1911; year: 2026"),
        ("Tides › Gauges", "The gauge stands.\n\nx = 1\n  y = 2"),
    ]


def test_xml_that_is_html_is_parsed_and_svg_refused() -> None:
    assert texts(read("a.xml", "<html><body><nav>Menu</nav><p>Words.</p></body></html>")) == [("", "Words.")]
    assert "a drawing" in (read("a.xml", '<svg xmlns="x"><text>T</text></svg>').error or "")


def test_notebook_gives_its_markdown_and_code() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Tides\n", "\n", "Read *here*."]},
        {"cell_type": "code", "source": "x = 1", "outputs": [{"text": ["printed"]}]},
        {"cell_type": "markdown", "source": "## High\n\nAt noon."},
    ]
    book = {"nbformat": 4, "metadata": {"kernelspec": {"language": "python"}}, "cells": cells}
    document = read("a.ipynb", json.dumps(book))
    assert document.metadata == {"format": "notebook", "language": "python"}
    assert texts(document) == [("Tides", "Read here.\n\nx = 1"), ("Tides › High", "At noon.")]
    older = {
        "nbformat": 3,
        "worksheets": [{"cells": [{"cell_type": "heading", "level": 1, "source": "Tides"}, *cells[1:]]}],
    }
    assert texts(read("a.ipynb", json.dumps(older)))[1] == ("Tides › High", "At noon.")


@pytest.mark.parametrize(
    "data", ["[]", "{}", '{"cells": 4}', "{", '{"cells": [4, {}, {"cell_type": "code", "source": 4}]}']
)
def test_invalid_notebook_has_an_error(data: str) -> None:
    assert read("a.ipynb", data).error


def test_source_code_gives_its_comments_and_docstrings() -> None:
    python = (
        '#!/usr/bin/python\n# Copyright 2026 Tarn, licensed to all.\n\n"""Reads tide gauges."""\nimport '
        "os  # noqa: F401\n\n\n"
        'def depth(path):\n    """The depth\n    in metres."""\n    # The tide never falls below this '
        "mark,\n    # whatever the season is.\n"
        "    # x = old(path); return x[0] or None\n    return 4\n"
    )
    document = read("a.py", python)
    assert document.metadata == {"format": "source", "language": "Python"}
    assert texts(document) == [
        (
            "",
            "Reads tide gauges.\n\ndepth: The depth\nin metres.\n\nThe tide never falls below this mark,\n"
            "whatever the season is.",
        )
    ]
    c = "/**\n * Reads the gauge at the pier.\n */\nint read(void) { // one\n  return 1; // the tide never falls lower\n}\n"
    assert texts(read("a.c", c)) == [("", "Reads the gauge at the pier.\n\nthe tide never falls lower")]


def test_source_code_that_says_nothing_or_was_generated_is_skipped() -> None:
    for data, reason in (
        ("x = 1\n", "without comments"),
        ("# Generated by protoc. DO NOT EDIT.\n# Some words of it here.\n", "a program wrote"),
    ):
        document = read("a.py", data)
        assert document.skipped and reason in (document.error or "")
