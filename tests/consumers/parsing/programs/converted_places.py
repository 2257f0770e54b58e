"""Old office files with a word in each place: `.doc` and `.ppt` by LibreOffice from flat OpenDocument, the others by hand.

The places are cited by sections of [MS-DOC], [MS-PPT] and [MS-VSDX]; those are missing that LibreOffice does not write, such as
alternative texts. No free program writes `.vsd` and `.pub`: hippod reads them like `.vsdx`, as the PDF that LibreOffice makes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consumers.parsing import Limits
from consumers.parsing.programs.libreoffice import convert
from tests.consumers.parsing.conservation.opendocument_markup import DECLARED, row
from tests.consumers.parsing.conservation.places import Words
from tests.consumers.parsing.samples import archive

Places = Mapping[str, tuple[str, str]]
"""The section and the OpenDocument markup of each place; `{}` in the markup stands for the word."""


def paragraph(inner: str) -> str:
    return f"<text:p>{inner}</text:p>"


COLUMNS = '<table:table-column table:number-columns-repeated="2"/>'
TEXT_BOX = (
    '<draw:frame text:anchor-type="paragraph" svg:width="4cm" svg:height="2cm"><draw:text-box>{}</draw:text-box>'
    "</draw:frame>"
)
NOTE = (
    'Mork<text:note text:note-class="{kind}"><text:note-citation>1</text:note-citation><text:note-body><text:p>{{}}</text:p>'
    "</text:note-body></text:note> built it."
)
WORD: Places = {
    "text": ("2.3.1", paragraph("The {} turns.")),
    "heading": ("2.3.1", '<text:h text:outline-level="1">{}</text:h>' + paragraph("Below.")),
    "item": ("2.9.131", f"<text:list><text:list-item>{paragraph('{}')}</text:list-item></text:list>"),
    "text of a link": ("2.9.90", paragraph('See <text:a xlink:href="http://a.example/">{}</text:a>.')),
    "cell": ("2.4.3", f"<table:table>{COLUMNS}{row('Year', 'Place')}{row('1911', '{}')}</table:table>"),
    "name of a column": ("2.4.3", f"<table:table>{COLUMNS}{row('Year', '{}')}{row('1911', 'Tarn')}</table:table>"),
    "footnote": ("2.3.2", paragraph(NOTE.format(kind="footnote"))),
    "endnote": ("2.3.5", paragraph(NOTE.format(kind="endnote"))),
    "comment": (
        "2.3.4",
        paragraph(f"a<office:annotation><dc:creator>Bo</dc:creator>{paragraph('{}')}</office:annotation>"),
    ),
    "author of a comment": (
        "2.3.4",
        paragraph(f"a<office:annotation><dc:creator>{{}}</dc:creator>{paragraph('b')}</office:annotation>"),
    ),
    "text box": ("2.3.6", paragraph("a" + TEXT_BOX.format(paragraph("{}")))),
    "hidden text": ("2.6.1", paragraph('a <text:span text:style-name="hidden">{}</text:span>')),
}  # fmt: skip
MARGINS: Places = {
    "header": ("2.3.3", "<style:header><text:p>{}</text:p></style:header>"),
    "footer": ("2.3.3", "<style:footer><text:p>{}</text:p></style:footer>"),
}
META: Places = {
    "title": ("[MS-OLEPS] 3.1", "<dc:title>{}</dc:title>"),
    "subject": ("[MS-OLEPS] 3.1", "<dc:subject>{}</dc:subject>"),
    "keywords": ("[MS-OLEPS] 3.1", "<meta:keyword>{}</meta:keyword>"),
    "comments": ("[MS-OLEPS] 3.1", "<dc:description>{}</dc:description>"),
    "author": ("[MS-OLEPS] 3.1", "<meta:initial-creator>{}</meta:initial-creator>"),
    "named property": ("[MS-OLEPS] 3.2", '<meta:user-defined meta:name="Client">{}</meta:user-defined>'),
}
SHAPE = '<draw:custom-shape svg:width="4cm" svg:height="2cm">{}</draw:custom-shape>'
PLACED = '<draw:frame svg:x="1cm" svg:y="1cm" svg:width="9cm" svg:height="3cm"{}>{}</draw:frame>'
SLIDE: Places = {
    "title": ("2.9.76", PLACED.format(' presentation:class="title"', f"<draw:text-box>{paragraph('{}')}</draw:text-box>")),
    "outline": ("2.9.76", PLACED.format(' presentation:class="outline"', f"<draw:text-box>{paragraph('{}')}</draw:text-box>")),
    "text box": ("2.9.76", PLACED.format("", f"<draw:text-box>{paragraph('{}')}</draw:text-box>")),
    "item": (
        "2.9.20",
        PLACED.format(
            "",
            f"<draw:text-box><text:list><text:list-item>{paragraph('{}')}</text:list-item></text:list></draw:text-box>",
        ),
    ),
    "shape": ("2.9.76", SHAPE.format(paragraph("{}"))),
    "shape in a group": ("[MS-ODRAW] 2.2.16", f"<draw:g>{SHAPE.format(paragraph('{}'))}{SHAPE.format('')}</draw:g>"),
    "cell": (
        "[MS-ODRAW] 2.3.6",
        PLACED.format("", f"<table:table>{COLUMNS}{row('Year', 'Place')}{row('1911', '{}')}</table:table>"),
    ),
    "comment": ("2.5.9", f"<office:annotation><dc:creator>Bo</dc:creator>{paragraph('{}')}</office:annotation>"),
    "notes": (
        "2.5.6",
        "<presentation:notes>"
        + PLACED.format(' presentation:class="notes"', f"<draw:text-box>{paragraph('{}')}</draw:text-box>")
        + "</presentation:notes>",
    ),
}  # fmt: skip


def written(places: Places, given: Words) -> str:
    return "".join(markup.replace("{}", given[place]) for place, (_, markup) in places.items() if place in given)


def flat(kind: str, body: str, given: Words, margins: str) -> bytes:
    """A flat OpenDocument file."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {DECLARED} office:version="1.2" '
        f'office:mimetype="application/vnd.oasis.opendocument.{kind}"><office:meta>{written(META, given)}</office:meta>'
        '<office:automatic-styles><style:page-layout style:name="l"><style:header-style/><style:footer-style/>'
        '</style:page-layout><style:style style:name="hidden" style:family="text"><style:text-properties '
        'text:display="none"/></style:style></office:automatic-styles><office:master-styles><style:master-page '
        f'style:name="Standard" style:page-layout-name="l">{margins}</style:master-page></office:master-styles>'
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document>"
    ).encode()


def word(limits: Limits, given: Words) -> bytes:
    body = written(WORD, given) + paragraph("The end.")
    return convert(flat("text", body, given, written(MARGINS, given)), "fodt", "doc", limits)


def powerpoint(limits: Limits, given: Words) -> bytes:
    page = f'<draw:page draw:name="p1" draw:master-page-name="Standard">{written(SLIDE, given)}</draw:page>'
    end = PLACED.format("", f"<draw:text-box>{paragraph('The end.')}</draw:text-box>")
    body = f'{page}<draw:page draw:name="p2" draw:master-page-name="Standard">{end}</draw:page>'
    return convert(flat("presentation", body, given, ""), "fodp", "ppt", limits)


SPACE = 'xmlns="http://schemas.microsoft.com/office/visio/2012/main"'
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
VISIO: Places = {
    "text of a shape": ("2.2.5.3", "<Shape ID='1' Type='Shape'>{box}<Text>{}</Text></Shape>"),
    "shape in a group": (
        "2.2.5.3.2",
        "<Shape ID='2' Type='Group'>{box}<Shapes><Shape ID='3' Type='Shape'>{box}<Text>{}</Text></Shape></Shapes></Shape>",
    ),
    "value of a shape": (
        "2.2.5.3.4",
        "<Shape ID='4' Type='Shape'>{box}<Section N='Property'><Row N='Owner'><Cell N='Value' V='{}' U='STR'/>"
        "<Cell N='Label' V='Owner'/></Row></Section><Text>b</Text></Shape>",
    ),
    "name of a value": (
        "2.2.5.3.4",
        "<Shape ID='5' Type='Shape'>{box}<Section N='Property'><Row N='Owner'><Cell N='Value' V='Ann' U='STR'/>"
        "<Cell N='Label' V='{}'/></Row></Section><Text>c</Text></Shape>",
    ),
}
OF_VISIO = {"name of a page": "2.2.5.2", "comment": "2.2.8", "title": "part 2, 8.3.3.1"}
BOX = "".join(
    f"<Cell N='{name}' V='{value}'/>"
    for name, value in (("PinX", 2), ("PinY", 2), ("Width", 2), ("Height", 1), ("LocPinX", 1), ("LocPinY", 0.5))
)


def related(*targets: tuple[str, str]) -> str:
    base = "http://schemas.microsoft.com/visio/2010/relationships"
    return (
        f'<Relationships xmlns="{RELATIONS}">'
        + "".join(
            f'<Relationship Id="r{number}" Type="{kind if ":" in kind else f"{base}/{kind}"}" Target="{target}"/>'
            for number, (kind, target) in enumerate(targets)
        )
        + "</Relationships>"
    )


def visio(_: Limits, given: Words) -> bytes:
    core = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
    title = f"<dc:title>{given['title']}</dc:title>" if "title" in given else ""
    comment = (
        f"<CommentEntry PageID='0' CommentID='1' AuthorID='1'>{given['comment']}</CommentEntry>"
        if "comment" in given
        else ""
    )
    types = "".join(
        f'<Override PartName="/visio/{name}.xml" ContentType="application/vnd.ms-visio.{kind}+xml"/>'
        for name, kind in (
            ("document", "drawing.main"),
            ("pages/pages", "pages"),
            ("pages/page1", "page"),
            ("comments", "comments"),
        )
    )
    shapes = written({place: (at, markup.replace("{box}", BOX)) for place, (at, markup) in VISIO.items()}, given)
    page = f"<Page ID='0' Name='{given.get('name of a page', 'p')}'><PageSheet><Cell N='PageWidth' V='8'/>"
    end = f"<Shape ID='9' Type='Shape'>{BOX}<Text>The end.</Text></Shape>"
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default '
        'Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        f'ContentType="application/xml"/>{types}</Types>',
        "_rels/.rels": related(("document", "visio/document.xml"), (core, "docProps/core.xml")),
        "docProps/core.xml": '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/'
        f'core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/">{title}</cp:coreProperties>',
        "visio/document.xml": f"<VisioDocument {SPACE}/>",
        "visio/_rels/document.xml.rels": related(("pages", "pages/pages.xml"), ("comments", "comments.xml")),
        "visio/pages/pages.xml": f"<Pages {SPACE} xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'>"
        f"{page}<Cell N='PageHeight' V='11'/></PageSheet><Rel r:id='r0'/></Page></Pages>",
        "visio/pages/_rels/pages.xml.rels": related(("page", "page1.xml")),
        "visio/pages/page1.xml": f"<PageContents {SPACE}><Shapes>{shapes}{end}</Shapes></PageContents>",
        "visio/comments.xml": f"<Comments {SPACE}><CommentList>{comment}</CommentList></Comments>",
    }
    return archive({name: f'<?xml version="1.0"?>{markup}' for name, markup in parts.items()})


SL = ('xmlns:sl="http://developer.apple.com/namespaces/sl" xmlns:sf="http://developer.apple.com/namespaces/sf" '
      'xmlns:sfa="http://developer.apple.com/namespaces/sfa"')  # fmt: skip
PAGES: Places = {
    "text": ("text-body", "<sf:p>{}</sf:p>"),
    "span": ("text-body", "<sf:p>a <sf:span>{}</sf:span></sf:p>"),
    "link": ("text-body", '<sf:p>a <sf:link href="http://a.example">{}</sf:link></sf:p>'),
}


def pages(_: Limits, given: Words) -> bytes:
    """A file of Pages '09, whose format Apple did not publish; LibreOffice reads it by libetonyek."""
    body = f"<sf:section><sf:layout>{written(PAGES, given)}<sf:p>The end.</sf:p></sf:layout></sf:section>"
    index = (
        f'<?xml version="1.0"?><sl:document {SL} sl:version="92008102400"><sl:publication-info/><sf:text-storage '
        f'sf:kind="body"><sf:text-body>{body}</sf:text-body></sf:text-storage></sl:document>'
    )
    return archive({"index.xml": index, "buildVersionHistory.plist": "<plist/>"})


@dataclass(frozen=True, slots=True)
class ConvertedFormat:
    """`write` gets words for some of the places."""

    places: Mapping[str, str]
    write: Callable[[Limits, Words], bytes]


def sections(*tables: Places) -> dict[str, str]:
    return {place: section for table in tables for place, (section, _) in table.items()}


FORMATS: Mapping[str, ConvertedFormat] = {
    "doc": ConvertedFormat(sections(WORD, MARGINS, META), word),
    "ppt": ConvertedFormat(sections(SLIDE, META), powerpoint),
    "vsdx": ConvertedFormat(sections(VISIO) | OF_VISIO, visio),
    "pages": ConvertedFormat(sections(PAGES), pages),
}
