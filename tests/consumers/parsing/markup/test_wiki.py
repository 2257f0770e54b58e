"""Wiki pages: exports of MediaWiki, pages of DokuWiki."""

from consumers.parsing import parse_data
from consumers.splitting import SplitSettings


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


def test_a_text_file_that_begins_with_a_title_of_dokuwiki_is_a_wiki_page() -> None:
    page = b"====== Bilge pump ======\n\nServiced by **Leif Aune**.\n"
    [document] = parse_data(page, b"pump.txt", "file:///pump.txt", SplitSettings())
    assert document.title == "Bilge pump" and document.passages[0].text == "Serviced by Leif Aune."
