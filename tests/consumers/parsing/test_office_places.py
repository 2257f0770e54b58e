"""Where the text of office files stands after reading: notes behind their paragraph, numbers of lists, strict files."""

import re
import zipfile
from io import BytesIO
from types import ModuleType

import pytest

from consumers.parsing.formats.office.numbering import Numbering
from consumers.parsing.parse_file import parse_data
from consumers.parsing.zip_archive import parse_xml
from consumers.splitting import SplitSettings
from consumers.types import ParsedDocument
from tests.consumers.parsing.conservation import docx_places, pptx_places, xlsx_places
from tests.consumers.parsing.conservation.docx_places import paragraph, run, words
from tests.consumers.parsing.conservation.office_parts import NAMESPACES, Related, element, package
from tests.consumers.parsing.conservation.opendocument_markup import opendocument
from tests.consumers.parsing.conservation.places import unique_words
from tests.consumers.parsing.samples import archive

SETTINGS = SplitSettings(max_tokens=400, min_tokens=0)


def read(name: str, data: bytes) -> ParsedDocument:
    [document] = parse_data(data, name.encode(), f"file:///{name}", SETTINGS)
    assert document.error is None
    return document


def text(document: ParsedDocument) -> str:
    return "\n\n".join(passage.text for passage in document.passages)


def word_file(body: str, **parts: str) -> bytes:
    related = {name: (name, f"{name}.xml") for name in parts}
    others: dict[str, tuple[str, Related]] = {
        f"word/{name}.xml": (element(f"w:{name}", markup), {}) for name, markup in parts.items()
    }
    return package(
        "word/document.xml",
        {"word/document.xml": (element("w:document", f"<w:body>{body}</w:body>"), related), **others},
    )


def strict(data: bytes) -> bytes:
    """The file with the names of namespaces that strict files have."""
    with zipfile.ZipFile(BytesIO(data)) as transitional:
        return archive(
            {
                name: re.sub(
                    rb"http://schemas\.openxmlformats\.org/(\w+)/2006/(?=main|relationships|chart|\w+Drawing|diagram|math)",
                    rb"http://purl.oclc.org/ooxml/\1/",
                    transitional.read(name),
                ).replace(
                    b"http://purl.oclc.org/ooxml/package/relationships",
                    b"http://schemas.openxmlformats.org/package/2006/relationships",
                )
                for name in transitional.namelist()
            }
        )


@pytest.mark.parametrize("places", [docx_places, pptx_places, xlsx_places])
def test_strict_ooxml_file_gives_the_passages_of_a_transitional_one(places: ModuleType) -> None:
    table = places.TABLE
    data = table.write(unique_words(table.places))
    with zipfile.ZipFile(BytesIO(strict(data))) as made:
        assert any(b"purl.oclc.org" in made.read(name) for name in made.namelist())
    assert read(table.file_name, strict(data)) == read(table.file_name, data)


def test_docx_headers_come_first_and_footnotes_after_their_paragraph() -> None:
    reference = "<w:r><w:footnoteReference w:id='2'/></w:r>"
    body = paragraph(run("The organ was built by Jens Mork") + reference + run(" and tuned by Siri Aas.")) + words(
        "The end."
    )
    line = f"<w:footnote w:type='separator' w:id='0'>{words('-')}</w:footnote>"
    notes = f"{line}<w:footnote w:id='2'>{words('Mork died in 1901.')}</w:footnote>"
    related = {"f": ("footnotes", "footnotes.xml"), "h": ("header", "header.xml"), "h2": ("header", "other.xml")}
    data = package(
        "word/document.xml",
        {
            "word/document.xml": (element("w:document", f"<w:body>{body}</w:body>"), related),
            "word/footnotes.xml": (element("w:footnotes", notes), {}),
            "word/header.xml": (element("w:hdr", words("Reference HG-5518")), {}),
            "word/other.xml": (element("w:hdr", words("Reference HG-5518")), {}),
        },
    )
    document = read("a.docx", data)
    assert text(document) == (
        "Reference HG-5518\n\nThe organ was built by Jens Mork and tuned by Siri Aas.\n\nMork died in 1901.\n\nThe end."
    )
    assert [each.text for each in document.left_out] == ["1 running header: Reference HG-5518"]


def numbered(list_id: int, level: int, inner: str) -> str:
    return f"<w:p><w:pPr><w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='{list_id}'/></w:numPr></w:pPr>{run(inner)}</w:p>"


def test_list_numbers_equal_those_shown_by_word() -> None:
    levels = "".join(
        f"<w:lvl w:ilvl='{level}'><w:start w:val='1'/><w:numFmt w:val='{form}'/><w:lvlText w:val='{label}'/></w:lvl>"
        for level, (form, label) in enumerate((("decimal", "%1."), ("lowerLetter", "%1.%2)"), ("upperRoman", "(%3)")))
    )
    numbering = (
        f"<w:abstractNum w:abstractNumId='0'>{levels}</w:abstractNum>"
        "<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num><w:num w:numId='2'><w:abstractNumId w:val='0'/>"
        "<w:lvlOverride w:ilvl='0'><w:startOverride w:val='7'/></w:lvlOverride></w:num>"
    )
    body = "".join(
        numbered(list_id, level, "x")
        for list_id, level in ((1, 0), (1, 1), (1, 1), (1, 2), (1, 0), (1, 1), (2, 0), (2, 0), (1, 0))
    )
    document = read("a.docx", word_file(body, numbering=numbering))
    labels = [line.removesuffix(" x") for line in text(document).split("\n")]
    assert labels == ["1.", "1.a)", "1.b)", "(I)", "2.", "2.a)", "7.", "8.", "9."]


def test_a_list_without_a_definition_has_no_label() -> None:
    root = parse_xml(f"<w:numbering xmlns:w='{NAMESPACES['w']}'/>".encode(), "numbering.xml")
    assert Numbering(root).label("1", 0) == "" and Numbering(None).label("1", 99) == ""


def test_formulas_are_written_in_one_line() -> None:
    def text_of(word: str) -> str:
        return f"<m:r><m:t>{word}</m:t></m:r>"

    inner = (
        f"{text_of('F=0.5ρCA')}<m:sSup><m:e>{text_of('v')}</m:e><m:sup>{text_of('2')}</m:sup></m:sSup>{text_of('+')}"
        f"<m:f><m:num>{text_of('a+b')}</m:num><m:den>{text_of('2')}</m:den></m:f>{text_of('+')}"
        f"<m:rad><m:deg>{text_of('3')}</m:deg><m:e>{text_of('x')}</m:e></m:rad>"
        f"<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e>{text_of('y')}</m:e></m:d>"
    )
    body = paragraph(f"{run('The drag is ')}<m:oMath>{inner}</m:oMath>{run(' in still water.')}")
    assert text(read("a.docx", word_file(body))) == "The drag is F=0.5ρCAv^2+(a+b)/2+3√(x)[y] in still water."


def test_non_breaking_hyphens_are_kept_and_soft_hyphens_removed() -> None:
    body = paragraph(
        "<w:r><w:t>AX</w:t><w:noBreakHyphen/><w:t>4471 of the Donau</w:t><w:softHyphen/><w:t>dampf\u00adschiff</w:t></w:r>"
    )
    assert text(read("a.docx", word_file(body))) == "AX-4471 of the Donaudampfschiff"


def test_symbol_font_characters_are_counted_as_unknown() -> None:
    signs = "".join(
        f"<w:r><w:sym w:font='{font}' w:char='{code}'/></w:r>"
        for font, code in (("Wingdings", "00DA"), ("Symbol", "F0DA"), ("Times", "00DA"))
    )
    document = read("a.docx", word_file(paragraph(f"{run('a')}{signs}")))
    assert text(document) == "aÚ"
    assert [(each.kind, each.count) for each in document.left_out] == [("unknown_character", 2)]


def test_soft_breaks_and_charts_of_slides_are_parsed() -> None:
    deck = pptx_places.write({})
    assert "The end" in text(read("a.pptx", deck))
    shape = pptx_places.shape(
        "", inner="<a:p><a:r><a:t>Keeper: Jorun Aske</a:t></a:r><a:br/><a:r><a:t>Deputy: Pell</a:t></a:r></a:p>"
    )
    title = pptx_places.shape(
        "", "title", inner="<a:p><a:r><a:t>Contacts of the</a:t></a:r><a:br/><a:r><a:t>Trust</a:t></a:r></a:p>"
    )
    slide = pptx_places.slide(title + shape)
    parts = {
        "ppt/presentation.xml": (
            element("p:presentation", "<p:sldIdLst><p:sldId id='256' r:id='s'/></p:sldIdLst>"),
            {"s": ("slide", "slides/slide1.xml")},
        ),
        "ppt/slides/slide1.xml": (slide, {}),
    }
    document = read("a.pptx", package("ppt/presentation.xml", parts))
    assert document.title == "Contacts of the Trust"
    assert text(document) == "Keeper: Jorun Aske\nDeputy: Pell"


def test_opendocument_lists_and_notes_keep_their_numbers() -> None:
    style = (
        "<text:list-style style:name='L'>"
        "<text:list-level-style-number text:level='1' style:num-format='1' style:num-suffix='.'/>"
        "<text:list-level-style-number text:level='2' style:num-format='a' text:display-levels='2' style:num-suffix=')'/>"
        "</text:list-style>"
    )

    def item(inner: str) -> str:
        return f"<text:list-item>{inner}</text:list-item>"

    def list_of(*items: str) -> str:
        return f"<text:list text:style-name='L'>{''.join(items)}</text:list>"

    inner = list_of(item("<text:p>b</text:p>"), item("<text:p>c</text:p>"))
    body = list_of(item(f"<text:p>a</text:p>{inner}"), item("<text:p>d</text:p>"))
    mark = "<text:note-citation>1</text:note-citation>"
    note = f"<text:note>{mark}<text:note-body><text:p>Mork died.</text:p></text:note-body></text:note>"
    document = read("a.odt", opendocument("text", f"{body}<text:p>Jens Mork{note} built it.</text:p>", styles=style))
    assert text(document) == "1. a\n1.a) b\n1.b) c\n2. d\n\nJens Mork built it.\n\nMork died."


@pytest.mark.parametrize(
    ("font", "page", "data", "expected"),
    [
        (
            "\\fcharset238 Arial CE",
            1252,
            rb"Klucz do m\'b3yna przechowuje \'a3ucja.",
            "Klucz do młyna przechowuje Łucja.",
        ),
        ("\\fcharset204 Calibri", 1251, rb"\'ca\'eb\'fe\'f7", "Ключ"),
        ("\\fcharset0 Calibri", 1251, rb"\'ca\'eb\'fe\'f7", "Ключ"),
        ("\\fcharset128 Mincho", 1252, rb"\'93\'8c\'8b\'9e", "東京"),
        ("\\fcharset0 Arial", 1252, rb"\uc1\u8364? \u55357?\u56842? \u-10179\'3f\u-8694\'3f", "€ 😊 😊"),
    ],
)
def test_rtf_is_decoded_by_its_fonts(font: str, page: int, data: bytes, expected: str) -> None:
    head = rf"{{\rtf1\ansi\ansicpg{page}\deff0{{\fonttbl{{\f0\fnil{font};}}}}\pard\f0 ".encode()
    assert text(read("a.rtf", head + data + rb"\par}")) == expected


def test_duplicate_picture_description_in_docx_is_kept_once() -> None:
    described = "descr='The gauge of 1911'"
    picture = f"<p:pic xmlns:p='picture'><p:cNvPr {described}/></p:pic>"
    place = (
        f"<wp:inline><wp:docPr {described}/><a:graphic><a:graphicData>{picture}</a:graphicData></a:graphic></wp:inline>"
    )
    document = read("a.docx", word_file(f"<w:p><w:r><w:drawing>{place}</w:drawing></w:r></w:p>"))
    assert text(document) == "The gauge of 1911"
