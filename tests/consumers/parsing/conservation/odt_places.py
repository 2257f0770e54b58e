"""OpenDocument text: the places are cited by sections of part 3 of version 1.3."""

from tests.consumers.parsing.conservation.opendocument_markup import frame, opendocument, row
from tests.consumers.parsing.conservation.places import FormatTable, Words


def paragraph(inner: str) -> str:
    return f"<text:p>{inner}</text:p>"


def note(kind: str, word: str) -> str:
    return paragraph(
        f"Mork<text:note text:note-class='{kind}'><text:note-citation>1</text:note-citation><text:note-body>"
        f"{paragraph(word)}</text:note-body></text:note> built it."
    )


BODY = {
    "text": ("5.1.3", paragraph),
    "heading": ("5.1.2", lambda word: f"<text:h text:outline-level='1'>{word}</text:h>{paragraph('Below.')}"),
    "heading with nothing below": ("5.1.2", lambda word: f"<text:h text:outline-level='2'>{word}</text:h>"),
    "span": ("6.1.7", lambda word: paragraph(f"a <text:span>b <text:span>{word}</text:span></text:span>")),
    "link": ("6.1.8", lambda word: paragraph(f"<text:a xlink:href='x'>{word}</text:a>")),
    "tip of a link": ("6.1.8", lambda word: paragraph(f"<text:a xlink:href='x' office:title='{word}'>here</text:a>")),
    "reading of a character": (
        "6.4",
        lambda word: paragraph(
            f"<text:ruby><text:ruby-base>東</text:ruby-base><text:ruby-text>{word}</text:ruby-text></text:ruby>"
        ),
    ),
    "item of a list": (
        "5.3.3",
        lambda word: f"<text:list text:style-name='L'><text:list-item>{paragraph(word)}</text:list-item></text:list>",
    ),
    "header of a list": (
        "5.3.4",
        lambda word: f"<text:list><text:list-header>{paragraph(word)}</text:list-header></text:list>",
    ),
    "list in a list": (
        "5.3.3",
        lambda word: (
            f"<text:list><text:list-item>{paragraph('a')}<text:list><text:list-item>{paragraph(word)}</text:list-item>"
            "</text:list></text:list-item></text:list>"
        ),
    ),
    "section": ("5.4", lambda word: f"<text:section>{paragraph(word)}</text:section>"),
    "footnote": ("6.3.2", lambda word: note("footnote", word)),
    "endnote": ("6.3.2", lambda word: note("endnote", word)),
    "comment": (
        "14.1",
        lambda word: paragraph(f"a<office:annotation><dc:creator>Bo</dc:creator>{paragraph(word)}</office:annotation>"),
    ),
    "author of a comment": (
        "14.1",
        lambda word: paragraph(
            f"a<office:annotation><dc:creator>{word}</dc:creator>{paragraph('b')}</office:annotation>"
        ),
    ),
    "text box": ("10.4.3", lambda word: paragraph(frame(f"<draw:text-box>{paragraph(word)}</draw:text-box>"))),
    "frame in a frame": (
        "10.4.2",
        lambda word: paragraph(
            frame(
                f"<draw:text-box>{paragraph(frame(f'<draw:text-box>{paragraph(word)}</draw:text-box>'))}</draw:text-box>"
            )
        ),
    ),
    "caption": (
        "10.4.3",
        lambda word: paragraph(frame(f"<draw:text-box>{paragraph(f'Figure 1: {word}')}</draw:text-box>")),
    ),
    "title of a picture": ("10.3.17", lambda word: paragraph(frame(f"<draw:image/><svg:title>{word}</svg:title>"))),
    "description of a picture": ("10.3.17", lambda word: paragraph(frame(f"<draw:image/><svg:desc>{word}</svg:desc>"))),
    "text in a shape": ("10.3.2", lambda word: paragraph(f"<draw:custom-shape>{paragraph(word)}</draw:custom-shape>")),
    "shape in a group": (
        "10.3.15",
        lambda word: paragraph(f"<draw:g><draw:rect>{paragraph(word)}</draw:rect></draw:g>"),
    ),
    "cell": ("9.1.4", lambda word: f"<table:table>{row('Year', 'Place')}{row('1911', word)}</table:table>"),
    "name of a column": ("9.1.4", lambda word: f"<table:table>{row('Year', word)}{row('1911', 'Tarn')}</table:table>"),
    "row of a header": (
        "9.2.7",
        lambda word: (
            f"<table:table><table:table-header-rows>{row('Year', word)}</table:table-header-rows>"
            f"{row('1911', 'a')}</table:table>"
        ),
    ),
    "cell over columns": (
        "9.1.4",
        lambda word: (
            "<table:table><table:table-row><table:table-cell table:number-columns-spanned='2'>"
            f"{paragraph(word)}</table:table-cell></table:table-row>{row('a', 'b')}</table:table>"
        ),
    ),
    "table in a cell": (
        "9.1.4",
        lambda word: (
            "<table:table><table:table-row><table:table-cell>"
            f"<table:table>{row(word, 'b')}</table:table></table:table-cell><table:table-cell/></table:table-row></table:table>"
        ),
    ),
    "list in a cell": (
        "9.1.4",
        lambda word: (
            "<table:table><table:table-row><table:table-cell><text:list><text:list-item>"
            f"{paragraph(word)}</text:list-item></text:list></table:table-cell><table:table-cell/></table:table-row></table:table>"
        ),
    ),
    "name of a table": (
        "19.728",
        lambda word: f"<table:table table:name='Mills of {word}'>{row('a', 'b')}</table:table>",
    ),
    "description of a table": (
        "9.1.14",
        lambda word: f"<table:table><table:desc>{word}</table:desc>{row('a', 'b')}</table:table>",
    ),
    "deleted text": (
        "5.5.4",
        lambda word: (
            "<text:tracked-changes><text:changed-region><text:deletion>"
            f"{paragraph(word)}</text:deletion></text:changed-region></text:tracked-changes>"
        ),
    ),
    "hidden text": ("7.7.5", lambda word: paragraph(f"a<text:hidden-text text:string-value='{word}'/>")),
    "text of a condition": (
        "7.7.4",
        lambda word: paragraph(
            f"a<text:conditional-text text:string-value-if-true='{word}' text:string-value-if-false='b'/>"
        ),
    ),
    "field": ("7.3.6", lambda word: paragraph(f"<text:author-name>{word}</text:author-name>")),
    "placeholder": ("7.7.3", lambda word: paragraph(f"<text:placeholder>{word}</text:placeholder>")),
    "entry of the table of contents": (
        "8.3",
        lambda word: (
            f"<text:table-of-content><text:index-body>{paragraph(word)}</text:index-body></text:table-of-content>"
        ),
    ),
    "entry of a bibliography": (
        "8.9",
        lambda word: f"<text:bibliography><text:index-body>{paragraph(word)}</text:index-body></text:bibliography>",
    ),
    "label of a button": (
        "13.5.9",
        lambda word: f"<office:forms><form:form><form:button form:label='{word}'/></form:form></office:forms>",
    ),
    "value of a field": (
        "13.5.3",
        lambda word: f"<office:forms><form:form><form:text form:current-value='{word}'/></form:form></office:forms>",
    ),
    "title of a chart": ("19.15", lambda word: paragraph(frame("<draw:object xlink:href='./Object 1'/>"))),
    "object in another program's format": (
        "10.4.6",
        lambda word: paragraph(frame(f"<draw:object-ole xlink:href='./{word}'/>")),
    ),
}
MARGINS = {
    "header": ("16.10", "<style:header><text:p>{}</text:p></style:header>"),
    "footer": ("16.11", "<style:footer><text:p>{}</text:p></style:footer>"),
    "header of left pages": ("16.12", "<style:header-left><text:p>{}</text:p></style:header-left>"),
}
META = {
    "title": ("4.3.2.2", "<dc:title>{}</dc:title>"),
    "description": ("4.3.2.3", "<dc:description>{}</dc:description>"),
    "subject": ("4.3.2.4", "<dc:subject>{}</dc:subject>"),
    "keyword": ("4.3.2.5", "<meta:keyword>{}</meta:keyword>"),
    "author": ("4.3.2.7", "<dc:creator>{}</dc:creator>"),
    "first author": ("4.3.2.6", "<meta:initial-creator>{}</meta:initial-creator>"),
    "named property": ("4.3.3", "<meta:user-defined meta:name='Client'>{}</meta:user-defined>"),
}


def write(given: Words) -> bytes:
    level = "<text:list-level-style-number text:level='1' style:num-format='1'/>"
    style = f"<text:list-style style:name='L'>{level}</text:list-style>"
    return opendocument(
        "text",
        "".join(make(given[place]) for place, (_, make) in BODY.items() if place in given) + paragraph("The end."),
        "".join(markup.format(given[place]) for place, (_, markup) in META.items() if place in given),
        "".join(markup.format(given[place]) for place, (_, markup) in MARGINS.items() if place in given),
        style,
        f"<chart:title>{paragraph(given['title of a chart'])}</chart:title>" if "title of a chart" in given else "",
    )


TABLE = FormatTable(
    "organ.odt",
    "OpenDocument 1.3, part 3",
    {place: section for table in (BODY, MARGINS, META) for place, (section, _) in table.items()},
    write,
)
