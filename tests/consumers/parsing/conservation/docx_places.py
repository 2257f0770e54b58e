"""WordprocessingML: the places are cited by sections of ECMA-376 part 1 where no other document is named."""

from tests.consumers.parsing.conservation.office_parts import Related, chart, diagram, element, package
from tests.consumers.parsing.conservation.places import FormatTable, Words


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(inner: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}{inner}</w:p>"


def words(text: str) -> str:
    return paragraph(run(text))


def box(content: str) -> str:
    return (
        f'<w:r><w:drawing><wp:inline><wp:docPr id="1" name="b"/><a:graphic><a:graphicData uri="u"><wps:wsp><wps:txbx>'
        f"<w:txbxContent>{content}</w:txbxContent></wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )


def row(*cells: str) -> str:
    return "<w:tr>" + "".join(f"<w:tc>{cell}</w:tc>" for cell in cells) + "</w:tr>"


def table(*rows: str) -> str:
    return f"<w:tbl>{''.join(rows)}</w:tbl>"


def field(data: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{data}</w:ffData></w:fldChar></w:r>'


def formula(word: str) -> str:
    part = f"<m:r><m:t>{word}</m:t></m:r>"
    return f"<m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den>{part}</m:den></m:f></m:oMath>"


def vml(inner: str) -> str:
    return paragraph(f"<w:r><w:pict>{inner}</w:pict></w:r>")


BODY = {
    "text": ("17.3.3.31", words),
    "heading": ("17.3.1.27", lambda word: paragraph(run(word), "Heading1") + words("Below.")),
    "heading with nothing below": ("17.3.1.27", lambda word: paragraph(run(word), "Heading2")),
    "item of a list": (
        "17.9",
        lambda word: f'<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr>{run(word)}</w:p>',
    ),
    "link": ("17.16.22", lambda word: paragraph(f'<w:hyperlink w:anchor="x">{run(word)}</w:hyperlink>')),
    "tip of a link": (
        "17.16.22",
        lambda word: paragraph(f'<w:hyperlink w:anchor="x" w:tooltip="{word}">{run("here")}</w:hyperlink>'),
    ),
    "simple field": ("17.16.19", lambda word: paragraph(f'<w:fldSimple w:instr="AUTHOR">{run(word)}</w:fldSimple>')),
    "caption": ("17.16.5.63", lambda word: paragraph(run(f"Figure 1: {word}"), "Caption")),
    "cell": (
        "17.4.66",
        lambda word: f"<w:tbl>{row(words('Year'), words('Place'))}{row(words('1911'), words(word))}</w:tbl>",
    ),
    "only cell": ("17.4.66", lambda word: f"<w:tbl>{row(words(word))}</w:tbl>"),
    "name of a column": (
        "17.4.78",
        lambda word: f"<w:tbl>{row(words('Year'), words(word))}{row(words('1911'), words('Tarn'))}</w:tbl>",
    ),
    "cell over columns": (
        "17.4.17",
        lambda word: (
            f"<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr>{words(word)}</w:tc></w:tr>"
            f"{row(words('1911'), words('Tarn'))}</w:tbl>"
        ),
    ),
    "cell over rows": (
        "17.4.84",
        lambda word: (
            f"<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val='restart'/></w:tcPr>{words('up')}</w:tc>"
            f"<w:tc>{words('b')}</w:tc></w:tr>"
            f"<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{words(word)}</w:tc><w:tc>{words('c')}</w:tc></w:tr></w:tbl>"
        ),
    ),
    "table in a cell": (
        "17.4.37",
        lambda word: table(row(words("a"), table(row(words(word), words("b"))) + words("c"))),
    ),
    "description of a table": (
        "17.4.46",
        lambda word: (
            f"<w:tbl><w:tblPr><w:tblDescription w:val='{word}'/></w:tblPr>{row(words('a'), words('b'))}</w:tbl>"
        ),
    ),
    "content control": ("17.5.2.29", lambda word: f"<w:sdt><w:sdtContent>{words(word)}</w:sdtContent></w:sdt>"),
    "control in a row": (
        "17.5.2.32",
        lambda word: (
            f"<w:tbl><w:tr><w:tc>{words('a')}</w:tc><w:sdt><w:sdtContent><w:tc>{words(word)}</w:tc></w:sdtContent></w:sdt>"
            "</w:tr></w:tbl>"
        ),
    ),
    "name of a control": (
        "17.5.2.1",
        lambda word: (
            f"<w:sdt><w:sdtPr><w:alias w:val='{word}'/></w:sdtPr><w:sdtContent>{words('a')}</w:sdtContent></w:sdt>"
        ),
    ),
    "custom markup": ("17.5.1.3", lambda word: f"<w:customXml w:element='x'>{words(word)}</w:customXml>"),
    "text box": ("20.4.2.38", lambda word: paragraph(box(words(word)))),
    "text box of old files": (
        "part 4, 19.1.2.22",
        lambda word: vml(f"<v:shape><v:textbox><w:txbxContent>{words(word)}</w:txbxContent></v:textbox></v:shape>"),
    ),
    "fallback that says more": (
        "part 3, 7.6",
        lambda word: paragraph(
            "<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:t>box</w:t></mc:Choice><mc:Fallback>"
            f"<w:t>{word}</w:t></mc:Fallback></mc:AlternateContent></w:r>"
        ),
    ),
    "word art": ("part 4, 19.1.2.23", lambda word: vml(f"<v:shape><v:textpath string='{word}'/></v:shape>")),
    "title of an old picture": (
        "part 4, 19.1.2.11",
        lambda word: vml(f"<v:shape><v:imagedata o:title='{word}'/></v:shape>"),
    ),
    "alternative text": (
        "20.4.2.5",
        lambda word: paragraph(
            f"<w:r><w:drawing><wp:inline><wp:docPr id='1' name='p' descr='{word}'/></wp:inline></w:drawing></w:r>"
        ),
    ),
    "title of a picture": (
        "20.4.2.5",
        lambda word: paragraph(
            f"<w:r><w:drawing><wp:inline><wp:docPr id='1' name='p' title='{word}'/></wp:inline></w:drawing></w:r>"
        ),
    ),
    "formula": ("22.1.2.77", lambda word: paragraph(formula(word))),
    "formula apart": ("22.1.2.78", lambda word: paragraph(f"<m:oMathPara>{formula(word)}</m:oMathPara>")),
    "inserted text": ("17.13.5.18", lambda word: paragraph(f"<w:ins w:id='1' w:author='B'>{run(word)}</w:ins>")),
    "deleted text": (
        "17.13.5.14",
        lambda word: paragraph(f"<w:del w:id='1' w:author='B'><w:r><w:delText>{word}</w:delText></w:r></w:del>"),
    ),
    "moved text": ("17.13.5.22", lambda word: paragraph(f"<w:moveFrom w:id='1'>{run(word)}</w:moveFrom>")),
    "hidden text": ("17.3.2.41", lambda word: paragraph(f"<w:r><w:rPr><w:vanish/></w:rPr><w:t>{word}</w:t></w:r>")),
    "reading of a character": (
        "17.3.3.25",
        lambda word: paragraph(
            f"<w:r><w:ruby><w:rt>{run(word)}</w:rt><w:rubyBase>{run('東')}</w:rubyBase></w:ruby></w:r>"
        ),
    ),
    "chosen entry of a form": (
        "17.16.9",
        lambda word: paragraph(
            field(f"<w:ddList><w:result w:val='1'/><w:listEntry w:val='a'/><w:listEntry w:val='{word}'/></w:ddList>")
        ),
    ),
    "help of a form": (
        "17.16.21",
        lambda word: paragraph(field(f"<w:helpText w:type='text' w:val='{word}'/>") + run("a")),
    ),
    "entry of the table of contents": ("17.16.5.68", lambda word: paragraph(run(word), "TOC1")),
}
SEPARATE = {
    "header": ("17.10.4", "header", "w:hdr"),
    "footer": ("17.10.3", "footer", "w:ftr"),
}
NOTES = {
    "footnote": ("17.11.10", "footnote", "footnoteReference"),
    "endnote": ("17.11.2", "endnote", "endnoteReference"),
    "comment": ("17.13.4.2", "comment", "commentReference"),
    "note without a mark": ("17.11.10", "footnote", ""),
}
LINKED = {
    "title of a chart": ("21.2.2.210", lambda word: chart(title=word)),
    "name of a series": ("21.2.2.174", lambda word: chart(series=word)),
    "category of a chart": ("21.2.2.24", lambda word: chart(category=word)),
    "axis of a chart": ("21.2.2.25", lambda word: chart(axis=word)),
    "diagram": ("21.4.2.10", diagram),
}
INCLUDED = {
    "included page": ("17.17.2.1", "htm", lambda word: f"<html><body><h2>{word}</h2></body></html>"),
    "included text": ("17.17.2.1", "txt", lambda word: f"The {word} turns."),
    "included rich text": ("17.17.2.1", "rtf", lambda word: f"{{\\rtf1 The {word} turns.\\par}}"),
}
PROPERTIES = {
    "title": ("part 2, 8.3.3.1", "dc:title"),
    "author": ("part 2, 8.3.3.1", "dc:creator"),
    "subject": ("part 2, 8.3.3.1", "dc:subject"),
    "description": ("part 2, 8.3.3.1", "dc:description"),
    "keywords": ("part 2, 8.3.3.1", "cp:keywords"),
    "category": ("part 2, 8.3.3.1", "cp:category"),
    "status": ("part 2, 8.3.3.1", "cp:contentStatus"),
}
OTHERS = {"custom property": "22.3.2.1", "building block": "17.12.10", "footer of a building block": "17.12.10"}


def write(given: Words) -> bytes:
    body = "".join(make(given[place]) for place, (_, make) in BODY.items() if place in given)
    related: dict[str, tuple[str, str]] = {}
    parts: dict[str, tuple[str, Related]] = {}

    def add(kind: str, name: str, markup: str) -> str:
        key = f"r{len(related)}"
        related[key] = (kind, name)
        parts[f"word/{name}"] = (markup, {})
        return key

    for number, (place, (_, kind, tag)) in enumerate(SEPARATE.items()):
        if place in given:
            add(kind, f"{kind}{number}.xml", element(tag, words(given[place])))
    for kind in ("footnote", "endnote", "comment"):
        notes = ""
        for number, (place, (_, of_kind, reference)) in enumerate(NOTES.items(), 1):
            if of_kind == kind and place in given:
                notes += f"<w:{kind} w:id='{number}'>{words(given[place])}</w:{kind}>"
                body += paragraph(f"<w:r><w:{reference} w:id='{number}'/></w:r>") if reference else ""
        if notes:
            add(f"{kind}s", f"{kind}s.xml", element(f"w:{kind}s", notes))
    for number, (place, (_, make)) in enumerate(LINKED.items()):
        if place in given:
            is_diagram = place == "diagram"
            key = add("diagramData" if is_diagram else "chart", f"linked{number}.xml", make(given[place]))
            mark = f"<dgm:relIds r:dm='{key}'/>" if is_diagram else f"<c:chart r:id='{key}'/>"
            body += paragraph(f"<w:r><w:drawing>{mark}</w:drawing></w:r>")
    for number, (place, (_, ending, make)) in enumerate(INCLUDED.items()):
        if place in given:
            key = add("aFChunk", f"included{number}.{ending}", make(given[place]))
            body += f"<w:altChunk r:id='{key}'/>"
    styles = "".join(
        f"<w:style w:type='paragraph' w:styleId='{key}'><w:name w:val='{name}'/></w:style>"
        for key, name in (
            ("Heading1", "heading 1"),
            ("Heading2", "heading 2"),
            ("TOC1", "toc 1"),
            ("Caption", "caption"),
        )
    )
    add("styles", "styles.xml", element("w:styles", styles))
    if "building block" in given:
        block = element("w:glossaryDocument", words(given["building block"]))
        parts["word/glossary/document.xml"] = (block, {})
    if "footer of a building block" in given:
        parts["word/glossary/footer1.xml"] = (element("w:ftr", words(given["footer of a building block"])), {})
    custom = (
        f"<property name='Client'><vt:lpwstr>{given['custom property']}</vt:lpwstr></property>"
        if "custom property" in given
        else ""
    )
    properties = "".join(f"<{tag}>{given[place]}</{tag}>" for place, (_, tag) in PROPERTIES.items() if place in given)
    document = element("w:document", f"<w:body>{body}{words('The end.')}</w:body>")
    return package("word/document.xml", {"word/document.xml": (document, related), **parts}, properties, custom)


TABLE = FormatTable(
    "letter.docx",
    "ECMA-376, 5th edition",
    {
        place: section
        for table in (BODY, SEPARATE, NOTES, LINKED, INCLUDED, PROPERTIES)
        for place, (section, *_) in table.items()
    }
    | OTHERS,
    write,
)
