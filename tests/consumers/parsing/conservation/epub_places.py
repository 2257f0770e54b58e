"""EPUB 3.3 (W3C). The numbers are those of its sections. Its pages are XHTML, of which `html_places` has the table."""

from tests.consumers.parsing.conservation.places import FormatTable, Words
from tests.consumers.parsing.samples import archive

PROPERTIES = {
    "title": ("5.5.3.1.2", "title"),
    "subtitle": ("5.5.3.1.2", "title"),
    "creator": ("5.5.3.2", "creator"),
    "second creator": ("5.5.3.2", "creator"),
    "contributor": ("5.5.3.2", "contributor"),
    "publisher": ("5.5.3.2", "publisher"),
    "subject": ("5.5.3.2", "subject"),
    "description": ("5.5.3.2", "description"),
    "rights": ("5.5.3.2", "rights"),
}
PAGES = {
    "chapter": ("5.7.2", "<itemref idref='{}'/>"),
    "page apart from the reading order": ("5.7.2", "<itemref idref='{}' linear='no'/>"),
    "page of no chapter": ("5.6.2", ""),
    "contents": ("5.4.1", ""),
}

NAV = " properties='nav'"


def write(words: Words) -> bytes:
    names = {place: f"p{number}" for number, place in enumerate(PAGES) if place in words}
    stated = "".join(
        f"<dc:{tag}>The {words[place]}</dc:{tag}>" for place, (_, tag) in PROPERTIES.items() if place in words
    )
    items = "".join(
        f"<item id='{name}' href='{name}.xhtml' media-type='application/xhtml+xml'"
        f"{NAV if place == 'contents' else ''}/>"
        for place, name in names.items()
    )
    spine = "".join(PAGES[place][1].format(name) for place, name in names.items())
    pages = {f"{name}.xhtml": f"<html><body><p>The {words[place]}.</p></body></html>" for place, name in names.items()}
    return archive(
        {
            "META-INF/container.xml": "<container><rootfiles><rootfile full-path='book.opf'/></rootfiles></container>",
            "book.opf": "<package><metadata xmlns:dc='http://purl.org/dc/elements/1.1/'>"
            f"{stated}</metadata><manifest><item id='first' href='first.xhtml' media-type='application/xhtml+xml'/>{items}"
            f"</manifest><spine><itemref idref='first'/>{spine}</spine></package>",
            "first.xhtml": "<html><body><p>The mill stands at the weir.</p></body></html>",
            **pages,
        }
    )


TABLE = FormatTable(
    "book.epub",
    "EPUB 3.3",
    {place: section for table in (PROPERTIES, PAGES) for place, (section, _) in table.items()},
    write,
)
