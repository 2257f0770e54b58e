"""EPUB: the places of the book; those of its pages are in the table of HTML. Cited by sections of EPUB 3.3."""

from tests.consumers.parsing.conservation.places import FormatTable, Words
from tests.consumers.parsing.samples import archive

PAGES = {
    "first part": ("5.7.1", "application/xhtml+xml", ""),
    "part outside the order": ("5.7.2", "application/xhtml+xml", ' linear="no"'),
    "part of an old book": ("OPF 2.0.1, 1.3.7", "text/x-oeb1-document", ""),
}
BESIDE = {"table of contents": ("7.2", ' properties="nav"'), "page that nothing names": ("5.6.2", "")}
META = {
    "title": ("5.5.3.1", "title"),
    "author": ("5.5.4.2", "creator"),
    "contributor": ("5.5.4.1", "contributor"),
    "publisher": ("5.5.4", "publisher"),
    "subject": ("5.5.4.4", "subject"),
    "description": ("5.5.4", "description"),
    "rights": ("5.5.4", "rights"),
}
OTHERS = {"second title": "5.5.3.1", "heading": "5.7.1", "picture": "3.2", "cover": "3.2"}


def page(inner: str) -> str:
    return f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>{inner}</body></html>'


def write(given: Words) -> bytes:
    items, order = "", ""
    parts: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
    }
    for number, (place, (_, kind, linear)) in enumerate(PAGES.items()):
        parts[f"OEBPS/page {number}.xhtml"] = page(f"<p>The {given.get(place, 'end')} turns.</p>")
        items += f'<item id="p{number}" href="page%20{number}.xhtml" media-type="{kind}"/>'
        order += f'<itemref idref="p{number}"{linear}/>'
    for number, (place, (_, properties)) in enumerate(BESIDE.items()):
        if place in given:
            parts[f"OEBPS/beside{number}.xhtml"] = page(f"<nav><ol><li>{given[place]}</li></ol></nav>")
            items += (
                f'<item id="b{number}" href="beside{number}.xhtml" media-type="application/xhtml+xml"{properties}/>'
            )
    if "heading" in given:
        parts["OEBPS/heading.xhtml"] = page(f"<h1>{given['heading']}</h1>")
        items += '<item id="h" href="heading.xhtml" media-type="application/xhtml+xml"/>'
        order += '<itemref idref="h"/>'
    pictures = {
        "picture": "<table><tr><td><img src='../My%20{}.png'/></td></tr></table>",
        "cover": "<svg><image xlink:href='../My%20{}.png'/></svg>",
    }
    for place, markup in pictures.items():
        if place in given:
            parts[f"OEBPS/text/{place}.xhtml"] = page(f"{markup.format(given[place])}")
            parts[f"OEBPS/My {given[place]}.png"] = "a picture"
            items += f'<item id="{place}" href="text/{place}.xhtml" media-type="application/xhtml+xml"/>'
            order += f'<itemref idref="{place}"/>'
    stated = "".join(f"<dc:{tag}>{given[place]}</dc:{tag}>" for place, (_, tag) in META.items() if place in given)
    stated += f"<dc:title>{given['second title']}</dc:title>" if "second title" in given else ""
    parts["OEBPS/book.opf"] = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{stated}</metadata><manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    return archive(parts)


TABLE = FormatTable(
    "book.epub",
    "EPUB 3.3",
    {place: section for table in (PAGES, BESIDE, META) for place, (section, *_) in table.items()} | OTHERS,
    write,
)
