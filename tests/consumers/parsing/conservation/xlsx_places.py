"""SpreadsheetML: the places are cited by sections of ECMA-376 part 1 where no other document is named."""

from tests.consumers.parsing.conservation.office_parts import Related, chart, element, package
from tests.consumers.parsing.conservation.places import FormatTable, Words


def cell(place: str, text: str) -> str:
    return f"<s:c r='{place}' t='inlineStr'><s:is><s:t>{text}</s:t></s:is></s:c>"


def anchored(inner: str) -> str:
    return f"<xdr:twoCellAnchor>{inner}</xdr:twoCellAnchor>"


ROWS = {
    "text of a cell": ("18.3.1.53", lambda word, at: cell(f"A{at}", word)),
    "piece of a rich text": (
        "18.4.4",
        lambda word, at: (
            f"<s:c r='A{at}' t='inlineStr'><s:is><s:r><s:t>a</s:t></s:r><s:r><s:t>{word}</s:t></s:r></s:is></s:c>"
        ),
    ),
    "shared text": ("18.4.8", None),
    "stored result of a formula": (
        "18.3.1.96",
        lambda word, at: f"<s:c r='A{at}' t='str'><s:f>T(1)</s:f><s:v>{word}</s:v></s:c>",
    ),
    "formula without a result": ("18.3.1.40", lambda word, at: f"<s:c r='A{at}'><s:f>{word.upper()}(B2)</s:f></s:c>"),
    "cell of a merged range": ("18.3.1.55", lambda word, at: cell(f"A{at}", word)),
    "cell of a hidden row": ("18.3.1.73", lambda word, at: cell(f"A{at}", word)),
}
DRAWN = {
    "text box": (
        "20.5.2.29",
        lambda word: anchored(f"<xdr:sp><xdr:txBody><a:p><a:r><a:t>{word}</a:t></a:r></a:p></xdr:txBody></xdr:sp>"),
    ),
    "alternative text": (
        "20.5.2.8",
        lambda word: anchored(
            f"<xdr:pic><xdr:nvPicPr><xdr:cNvPr id='1' name='p' descr='{word}'/></xdr:nvPicPr></xdr:pic>"
        ),
    ),
    "picture": (
        "20.5.2.25",
        lambda word: anchored("<xdr:pic><xdr:blipFill><a:blip r:embed='p'/></xdr:blipFill></xdr:pic>"),
    ),
    "title of a chart": (
        "21.2.2.210",
        lambda word: anchored("<xdr:graphicFrame><c:chart r:id='c'/></xdr:graphicFrame>"),
    ),
}
AROUND = {
    "header": (
        "18.3.1.46",
        '<s:headerFooter><s:oddHeader>&amp;L&amp;"Arial,Bold"&amp;12{}&amp;RPage &amp;P</s:oddHeader></s:headerFooter>',
    ),
    "prompt": ("18.3.1.32", "<s:dataValidations><s:dataValidation sqref='A1' prompt='{}'/></s:dataValidations>"),
    "error": ("18.3.1.32", "<s:dataValidations><s:dataValidation sqref='A1' error='{}'/></s:dataValidations>"),
    "tip of a link": ("18.3.1.47", "<s:hyperlinks><s:hyperlink ref='A1' location='B1' tooltip='{}'/></s:hyperlinks>"),
}
OTHERS = {
    "name of a sheet": "18.2.19",
    "hidden sheet": "18.2.19",
    "comment": "18.7.3",
    "author of a comment": "18.7.1",
    "picture behind the cells": "18.3.1.67",
    "threaded comment": "[MS-XLSX] 2.6.202",
    "name of a column": "18.3.1.73",
    "line above the table": "18.3.1.73",
    "title": "part 2, 8.3.3.1",
    "custom property": "22.3.2.1",
}


def write(given: Words) -> bytes:
    related: dict[str, tuple[str, str]] = {}
    parts: dict[str, tuple[str, Related]] = {}
    rows = []
    if "line above the table" in given:
        rows.append(cell("A1", given["line above the table"]))
    heading = given.get("name of a column", "Name")
    rows.append(
        "".join(
            cell(f"{column}{len(rows) + 1}", text)
            for column, text in zip("ABC", (heading, "Area", "Year"), strict=True)
        )
    )
    for place, (_, make) in ROWS.items():
        if place in given:
            at = len(rows) + 1
            first = f"<s:c r='A{at}' t='s'><s:v>0</s:v></s:c>" if make is None else make(given[place], at)
            rows.append(f"{first}<s:c r='B{at}'><s:v>{at}</s:v></s:c><s:c r='C{at}'><s:v>1911</s:v></s:c>")
    data = "".join(f"<s:row r='{number}'>{row}</s:row>" for number, row in enumerate(rows, 1))
    around = "".join(markup.format(given[place]) for place, (_, markup) in AROUND.items() if place in given)
    if drawn := "".join(make(given[place]) for place, (_, make) in DRAWN.items() if place in given):
        picture = f"{given.get('picture', 'a')}.png"
        shown = {"c": ("chart", "chart.xml"), "p": ("image", picture)}
        parts["xl/worksheets/drawing.xml"] = (element("xdr:wsDr", drawn), shown)
        parts[f"xl/worksheets/{picture}"] = ("a picture", {})
        parts["xl/worksheets/chart.xml"] = (chart(title=given.get("title of a chart", "a")), {})
        related["d"] = ("drawing", "drawing.xml")
    if {"comment", "author of a comment"} & given.keys():
        author, comment = given.get("author of a comment", "Ann"), given.get("comment", "Note")
        markup = (
            f"<s:authors><s:author>{author}</s:author></s:authors><s:commentList><s:comment ref='A1' authorId='0'><s:text>"
            f"<s:t>{comment}</s:t></s:text></s:comment></s:commentList>"
        )
        parts["xl/worksheets/comments.xml"] = (element("s:comments", markup), {})
        related["k"] = ("comments", "comments.xml")
    if "threaded comment" in given:
        markup = f"<tc:threadedComment ref='A1'><tc:text>{given['threaded comment']}</tc:text></tc:threadedComment>"
        parts["xl/worksheets/threads.xml"] = (element("tc:ThreadedComments", markup), {})
        related["t"] = ("threadedComment", "threads.xml")
    if "picture behind the cells" in given:
        related["b"] = ("image", f"{given['picture behind the cells']}.png")
        parts[f"xl/worksheets/{given['picture behind the cells']}.png"] = ("a picture", {})
    parts["xl/worksheets/sheet1.xml"] = (element("s:worksheet", f"<s:sheetData>{data}</s:sheetData>{around}"), related)
    other = f"<s:sheetData><s:row r='1'>{cell('A1', given.get('hidden sheet', 'The end'))}</s:row></s:sheetData>"
    parts["xl/worksheets/sheet2.xml"] = (element("s:worksheet", other), {})
    shared = f"<s:si><s:t>{given.get('shared text', 'a')}</s:t></s:si>"
    parts["xl/sharedStrings.xml"] = (element("s:sst", shared), {})
    sheets = (
        f"<s:sheets><s:sheet name='{given.get('name of a sheet', 'Stock')}' sheetId='1' r:id='a'/>"
        "<s:sheet name='Other' sheetId='2' state='hidden' r:id='b'/></s:sheets>"
    )
    parts["xl/workbook.xml"] = (
        element("s:workbook", sheets),
        {
            "a": ("worksheet", "worksheets/sheet1.xml"),
            "b": ("worksheet", "worksheets/sheet2.xml"),
            "c": ("sharedStrings", "sharedStrings.xml"),
        },
    )
    title = f"<dc:title>{given['title']}</dc:title>" if "title" in given else ""
    custom = (
        f"<property name='Client'><vt:lpwstr>{given['custom property']}</vt:lpwstr></property>"
        if "custom property" in given
        else ""
    )
    return package("xl/workbook.xml", parts, title, custom)


TABLE = FormatTable(
    "stock.xlsx",
    "ECMA-376, 5th edition",
    {place: section for table in (ROWS, DRAWN, AROUND) for place, (section, *_) in table.items()} | OTHERS,
    write,
)
