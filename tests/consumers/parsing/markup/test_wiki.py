"""Wiki pages: exports of MediaWiki, pages of DokuWiki."""

from html import escape

import pytest

from consumers.parsing import parse_data
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument


def test_each_page_of_a_mediawiki_export_is_a_document_under_its_title() -> None:
    texts = {"Skarvholm": "An island with [[Ternholm|a ferry]].", "Ternholm": "== Ferry ==\nKaja Strand runs it."}
    pages = "".join(
        f"<page><title>{title}</title><revision><timestamp>2024-01-01T00:00:00Z</timestamp><contributor><username>Ann"
        f"</username></contributor><text>{text}</text></revision></page>"
        for title, text in texts.items()
    )
    data = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">{pages}</mediawiki>'.encode()
    first, second = parse_data(data, b"dump.xml", "file:///dump.xml", SplitSettings())
    assert (first.uri, first.title) == ("file:///dump.xml#Skarvholm", "Skarvholm")
    assert {key: first.metadata[key] for key in ("date", "author")} == {"date": "2024-01-01T00:00:00Z", "author": "Ann"}
    assert [(link.target, link.text) for link in first.passages[0].links] == [("Ternholm", "a ferry")]
    assert second.title == "Ternholm" and "Kaja Strand runs it." in second.passages[0].text


def page(title: str, *texts: tuple[str, str], redirect: str = "", model: str = "wikitext") -> str:
    """A page of an export with one revision for each time and text."""
    revisions = "".join(
        f"<revision><timestamp>{time}</timestamp><contributor><ip>1.2.3.4</ip></contributor><model>{model}</model>"
        f"<text>{escape(text)}</text></revision>"
        for time, text in texts
    )
    target = f'<redirect title="{redirect}"/>' if redirect else ""
    return f"<page><title>{title}</title><ns>0</ns>{target}{revisions}</page>"


def export(*pages: str) -> list[ParsedDocument]:
    data = f"<mediawiki><siteinfo><sitename>Islewiki</sitename></siteinfo>{''.join(pages)}</mediawiki>".encode()
    return list(parse_data(data, b"dump.xml", "file:///dump.xml", SplitSettings()))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_only_the_newest_revision_of_a_page_is_its_text(order: tuple[int, int]) -> None:
    revisions = [("2023-01-01T00:00:00Z", "A mill."), ("2024-01-01T00:00:00Z", "Two mills.")]
    [document] = export(page("Skarvholm", *(revisions[each] for each in order)))
    assert [passage.text for passage in document.passages] == ["Two mills."]
    assert document.metadata["date"] == "2024-01-01T00:00:00Z" and document.metadata["site"] == "Islewiki"
    account = ["1 alternative version: 2023-01-01T00:00:00Z 1.2.3.4 A mill."]
    assert [each.text for each in document.left_out] == account


def test_redirects_are_aliases_of_the_page_to_which_they_lead() -> None:
    at = "2024-01-01T00:00:00Z"
    documents = export(
        page("Old mill", (at, "#REDIRECT [[Skarvholm#Mill]]\n[[Category:Old names]]"), redirect="Skarvholm#Mill"),
        page("Skarvholm", (at, "A mill.")),
        page("Elsewhere", (at, "#WEITERLEITUNG [[Ternholm]]"), redirect="Ternholm"),
    )
    assert [document.title for document in documents] == ["Skarvholm", "Elsewhere"]
    assert documents[0].metadata["aliases"] == ["Old mill"]
    assert [each.text for each in documents[0].left_out] == ["1 header or property: [[Category:Old names]]"]
    assert documents[1].passages[0].text == "WEITERLEITUNG Ternholm"


def test_pages_of_other_content_models_are_parsed_by_their_model() -> None:
    module, empty = export(
        page(
            "Module:Tides", ("2024-01-01T00:00:00Z", "-- Computes the tide of a day.\nlocal x = 1"), model="Scribunto"
        ),
        page("Talk:Tides", ("2024-01-01T00:00:00Z", "")),
    )
    assert module.title == "Module:Tides" and module.passages[0].text == "Computes the tide of a day."
    assert [(each.kind, each.count) for each in module.left_out] == [("code", 1)]
    assert empty.title == "Talk:Tides" and empty.passages[0].text == "Talk:Tides"


def test_wiki_markup_gives_the_displayed_text() -> None:
    lines = {
        "a<br/>b": "a\nb",
        "born {{lang|de|Kai}} in {{{1|1911}}}": "born de Kai in 1911",
        "<nowiki>[[Weir]] ''x''</nowiki>": "[[Weir]] ''x''",
        '<syntaxhighlight lang="c">\n# include [[a]]\n</syntaxhighlight>': "# include [[a]]",
        "<gallery>\nFile:a.jpg|The [[Weir|old weir]]\n</gallery>": "The old weir",
        "[//a.example the mill]": "the mill",
        "Use __init__, a ** b, //server/share and f((x))": "Use __init__, a ** b, //server/share and f((x))",
        "----": "The end.",
    }
    for markup, shown in lines.items():
        [document] = export(page("", ("2024-01-01T00:00:00Z", f"{markup}\n\nThe end.")))
        assert document.passages[0].text.removesuffix("The end.").strip() in (shown, "")
        assert shown in document.passages[0].text


def test_a_text_file_that_begins_with_a_title_of_dokuwiki_is_a_wiki_page() -> None:
    page = b"====== Bilge pump ======\n\nServiced by **Leif Aune**.\n"
    [document] = parse_data(page, b"pump.txt", "file:///pump.txt", SplitSettings())
    assert document.title == "Bilge pump" and document.passages[0].text == "Serviced by Leif Aune."


@pytest.mark.parametrize(
    ("name", "source", "rows"),
    [
        (
            "a.mediawiki",
            "{|\n! Key that you press !! What\n|-\n| Alt and F1 or Enter || Add\n|}",
            "Key that you press: Alt and F1 or Enter; What: Add",
        ),
        ("a.mediawiki", "{|\n| F1 || Zoom in\n|-\n| F2 || Zoom out\n|}", "F1; Zoom in\nF2; Zoom out"),
        (
            "a.org",
            "| Key that you press | What |\n|--+--|\n| Alt and F1 or Enter | Add |",
            "Key that you press: Alt and F1 or Enter; What: Add",
        ),
        ("a.org", "| F1 | Zoom in |\n| F2 | Zoom out |", "F1; Zoom in\nF2; Zoom out"),
    ],
)
def test_a_first_row_is_a_header_if_it_is_marked_or_unlike_the_rows_below(name: str, source: str, rows: str) -> None:
    [document] = parse_data(source.encode(), name.encode(), f"file:///{name}", SplitSettings())
    assert document.passages[0].text == rows


def test_a_line_is_given_only_if_it_is_the_line_of_the_file() -> None:
    for source, line in (
        ("== A ==\nText.\n\nThe mill stands.", 2),
        ("<!-- a\nb\nc -->{{Box|a=1|b=2}}\nThe mill stands.", None),
    ):
        [document] = parse_data(source.encode(), b"a.mediawiki", "file:///a.mediawiki", SplitSettings())
        assert document.passages[0].location.get("line") == line
