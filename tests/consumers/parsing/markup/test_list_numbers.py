"""Items of numbered lists keep their numbers in every markup format, so that "step 7" can be found."""

import pytest

from consumers.parsing import parse_data
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument

LISTS = {
    "a.md": ("3. Open\n4. Close\n", "3. Open\n4. Close"),
    "a.html": (
        "<ol start=3><li>Open<ol type=a><li>left<li>right</ol><li value=7>Close<li>Lock<ul><li>key</ul></ol>",
        "3. Open\na. left\nb. right\n7. Close\n8. Lock\n- key",
    ),
    "reversed.html": ("<ol reversed><li>Close<li hidden>Wait<li>Open</ol>", "3. Close\n2. Open"),
    "plain.html": ("<ol style='list-style: none'><li>Open</ol><ol type=I><li>Close</ol>", "- Open\nI. Close"),
    "cells.html": (
        "<table><tr><th>Part<th>Steps<tr><td>valve<td><ol><li>Open<li>Close</ol></table>",
        "Part: valve; Steps: 1. Open 2. Close",
    ),
    "a.mediawiki": (
        "# Open\n#* left\n#: and wait\n# Close\n## key\n## lock\n\nThen:\n# Rest",
        "1. Open\n- left\n- and wait\n2. Close\n1. key\n2. lock\n\nThen:\n1. Rest",
    ),
    "a.dokuwiki": (
        "====== Valve ======\n  - Open\n    * left\n  - Close\n  * key\n  - Rest",
        "1. Open\n- left\n2. Close\n- key\n1. Rest",
    ),
    "a.org": ("3. Open\n4. [X] Close\n   - key\n", "3. Open\n4. [X] Close\n- key"),
    "a.rst": ("3. Open\n4. Close\n", "3. Open\n4. Close"),
    "a.tex": (
        r"\begin{enumerate}[start=3]\item Open\begin{enumerate}\item left\item right\end{enumerate}"
        r"\item[Note] Wait\item Close\end{enumerate}\begin{itemize}\item Rest\end{itemize}",
        "3. Open\n\n(a) left\n(b) right\n\n- Note Wait\n4. Close\n\n- Rest",
    ),
    "a.8": (
        ".Dd May 4, 2026\n.Dt VALVE 8\n.Sh STEPS\n.Bl -enum\n.It\nOpen\n.Bl -bullet\n.It\nleft\n.El\n.It\nClose\n.El\n",
        "1. Open\n\nleft\n2. Close",
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_items_keep_their_numbers(name: str) -> None:
    source, expected = LISTS[name]
    (document,) = parse_data(source.encode(), name.encode(), "file:///f", SplitSettings())
    assert isinstance(document, ParsedDocument)
    assert "\n".join(passage.text for passage in document.passages) == expected
