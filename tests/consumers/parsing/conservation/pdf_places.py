"""PDF, ISO 32000-1:2008. The numbers are those of its sections."""

from tests.consumers.parsing.conservation.places import FormatTable, Words

SHOWN = {
    "text": ("9.4.3", "BT /F1 11 Tf 60 {y} Td ({}) Tj ET"),
    "text in pieces": ("9.4.3", "BT /F1 11 Tf 60 {y} Td [({0}) -20 ({1})] TJ ET"),
    "large text": ("9.3.1", "BT /F1 22 Tf 60 {y} Td ({}) Tj ET"),
    "invisible text": ("9.3.6", "BT 3 Tr /F1 11 Tf 60 {y} Td ({}) Tj ET"),
    "turned text": ("9.4.2", "BT /F1 11 Tf 0 1 -1 0 500 {y} Tm ({}) Tj ET"),
    "replacement text": ("14.9.4", "/Span <</ActualText ({})>> BDC BT /F1 11 Tf 60 {y} Td (x) Tj ET EMC"),
    "hidden layer": ("8.11.3", "/OC /Layer BDC BT /F1 11 Tf 60 {y} Td ({}) Tj ET EMC"),
    "form object": ("8.10.1", "/Form Do"),
}
ANNOTATIONS = {
    "note": ("12.5.6.4", "/Subtype /Text /Contents ({})"),
    "author of a note": ("12.5.6.2", "/Subtype /Text /T ({}) /Contents (See below)"),
    "rich note": ("12.7.3.4", "/Subtype /Text /RC (<body><p>{}</p></body>)"),
    "free text": ("12.5.6.6", "/Subtype /FreeText /DA (/F1 11 Tf) /Contents ({})"),
    "line": ("12.5.6.7", "/Subtype /Line /L [0 0 9 9] /Contents ({})"),
    "highlight": ("12.5.6.10", "/Subtype /Highlight /QuadPoints [0 0 9 0 0 9 9 9] /Contents ({})"),
    "stamp": ("12.5.6.12", "/Subtype /Stamp /Contents ({})"),
    "ink": ("12.5.6.13", "/Subtype /Ink /InkList [[0 0 9 9]] /Contents ({})"),
    "attached to a page": ("12.5.6.15", "/Subtype /FileAttachment /FS << /Type /Filespec /F (a) >> /Contents ({})"),
}
APPEARANCES = {
    "appearance of a signature": ("12.7.4.5", "/Subtype /Widget /FT /Sig /T (seal)"),
    "appearance of a stamp": ("12.5.6.12", "/Subtype /Stamp"),
    "appearance of a field outside the form": ("12.7.2", "/Subtype /Widget /FT /Tx /T (bay)"),
}
FIELDS = {
    "text field": ("12.7.4.3", "/FT /Tx /T (name) /V ({})"),
    "name of a field": ("12.7.3.1", "/FT /Tx /T (f) /TU (The {}) /V (Bo)"),
    "partial name of a field": ("12.7.3.2", "/FT /Tx /T ({}) /V (Bo)"),
    "many lines": ("12.7.4.3", "/FT /Tx /Ff 4096 /T (lines) /V (One\\n{})"),
    "check box": ("12.7.4.2.3", "/FT /Btn /T ({}) /V /Yes /AS /Yes /AP << /N << /Yes 5 0 R /Off 5 0 R >> >>"),
    "choice": ("12.7.4.4", "/FT /Ch /Ff 131072 /T (berth) /Opt [({}) (b)] /V ({})"),
}
INFO = {
    "title": ("14.3.3", "Title"),
    "author": ("14.3.3", "Author"),
    "subject": ("14.3.3", "Subject"),
    "keywords": ("14.3.3", "Keywords"),
}
OTHER = {
    "header": ("14.8.2.2.2", ""),
    "footer with the page's number": ("14.8.2.2.2", ""),
    "second page": ("7.7.3", ""),
    "value of a parent field": ("12.7.3.2", ""),
    "bookmark": ("12.3.3", ""),
    "alternative text": ("14.9.3", ""),
    "embedded file": ("7.11.4", ""),
    "text of an embedded file": ("7.11.4", ""),
}


class _File:
    """Objects of a PDF; 1 is the catalog, 2 the tree of pages, 3 the font, 4 the form object, 5 an empty appearance."""

    def __init__(self) -> None:
        self.objects: list[str] = [""] * 5

    def add(self, body: str) -> int:
        self.objects.append(body)
        return len(self.objects)

    def stream(self, content: str, entries: str = "") -> str:
        return f"<< {entries} /Length {len(content)} >>\nstream\n{content}\nendstream"

    def done(self, info: int) -> bytes:
        out, offsets = b"%PDF-1.7\n", []
        for number, body in enumerate(self.objects, 1):
            offsets.append(len(out))
            out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
        table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
        size = len(offsets) + 1
        return out + (
            f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer << /Size {size} /Root 1 0 R /Info {info} 0 R >>\n"
            f"startxref\n{len(out)}\n%%EOF\n"
        ).encode("latin-1")


def write(words: Words) -> bytes:
    """Four pages; what a page can hold several times stands on the first."""
    file = _File()
    font = "/Font << /F1 3 0 R >>"
    file.objects[2] = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    inside = f"BT /F1 11 Tf 60 40 Td ({words.get('form object', '')}) Tj ET"
    file.objects[3] = file.stream(inside, f"/Type /XObject /Subtype /Form /BBox [0 0 600 900] /Resources << {font} >>")
    file.objects[4] = file.stream("", "/Type /XObject /Subtype /Form /BBox [0 0 9 9]")
    layer = file.add("<< /Type /OCG /Name (Layer) >>")
    shown, y = ["BT /F1 11 Tf 60 780 Td (The mill stands at the weir.) Tj ET"], 740
    for place, (_, operators) in SHOWN.items():
        if place in words:
            text = words[place]
            given = (text[:4], text[4:]) if place == "text in pieces" else (text,)
            shown.append(operators.format(*given, y=y))
            y -= 40
    annotations = [
        file.add(f"<< /Type /Annot /Rect [0 0 9 9] {entries.format(words[place])} >>")
        for place, (_, entries) in ANNOTATIONS.items()
        if place in words
    ]
    for place, (_, entries) in APPEARANCES.items():
        if place in words:
            look = "/Type /XObject /Subtype /Form /BBox [0 0 200 20]"
            drawn = file.add(
                file.stream(f"BT /F1 11 Tf 2 2 Td ({words[place]}) Tj ET", f"{look} /Resources << {font} >>")
            )
            annotation = f"<< /Type /Annot /Rect [300 {y} 500 {y + 20}] /AP << /N {drawn} 0 R >> {entries} >>"
            annotations.append(file.add(annotation))
            y -= 40
    fields = [
        file.add(f"<< /Type /Annot /Subtype /Widget /Rect [0 0 9 9] {entries.replace('{}', words[place])} >>")
        for place, (_, entries) in FIELDS.items()
        if place in words
    ]
    widgets = list(fields)
    if word := words.get("value of a parent field"):
        parent = len(file.objects) + 1
        file.add(f"<< /FT /Tx /T (parent) /V ({word}) /Kids [{parent + 1} 0 R] >>")
        widgets.append(file.add(f"<< /Type /Annot /Subtype /Widget /Rect [0 0 9 9] /Parent {parent} 0 R >>"))
        fields.append(parent)
    structure = ""
    if word := words.get("alternative text"):
        figure = len(file.objects) + 2
        tree = file.add(f"<< /Type /StructTreeRoot /K [{figure} 0 R] /ParentTree << /Nums [0 [{figure} 0 R]] >> >>")
        file.add(f"<< /Type /StructElem /S /Figure /P {tree} 0 R /Alt (The {word}) /Pg {figure + 1} 0 R /K 0 >>")
        structure = f"/StructTreeRoot {tree} 0 R /MarkInfo << /Marked true >>"
        shown.append("/Figure << /MCID 0 >> BDC 0 0 1 1 re f EMC")
    pages = []
    for number in range(1, 5):
        body = (
            list(shown) if number == 1 else [f"BT /F1 11 Tf 60 700 Td (Page of the weir {'abcd'[number - 1]}.) Tj ET"]
        )
        if number == 2 and "second page" in words:
            body.append(f"BT /F1 11 Tf 60 680 Td ({words['second page']}) Tj ET")
        if word := words.get("header"):
            body.insert(0, f"BT /F1 11 Tf 60 820 Td ({word}) Tj ET")
        if word := words.get("footer with the page's number"):
            body.append(f"BT /F1 11 Tf 60 20 Td ({word}) Tj 300 0 Td ({number}) Tj ET")
        first = number == 1
        listed = " ".join(f"{each} 0 R" for each in (*annotations, *widgets)) if first else ""
        page = file.add(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {len(file.objects) + 2} 0 R "
            f"/Resources << {font} /XObject << /Form 4 0 R >> /Properties << /Layer {layer} 0 R >> >> "
            f"/Annots [{listed}] {'/StructParents 0' if first else ''} >>"
        )
        file.add(file.stream("\n".join(body)))
        pages.append(f"{page} 0 R")
    file.objects[1] = f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(pages)}] >>"
    catalog = [f"/OCProperties << /OCGs [{layer} 0 R] /D << /OFF [{layer} 0 R] >> >>", structure]
    if fields:
        catalog.append(f"/AcroForm << /Fields [{' '.join(f'{field} 0 R' for field in fields)}] >>")
    if word := words.get("bookmark"):
        outline = len(file.objects) + 1
        file.add(f"<< /Type /Outlines /First {outline + 1} 0 R /Last {outline + 1} 0 R /Count 1 >>")
        file.add(f"<< /Title (The {word}) /Parent {outline} 0 R /Dest [{pages[0]} /Fit] >>")
        catalog.append(f"/Outlines {outline} 0 R")
    embedded = ""
    for place, name, content in (
        ("embedded file", "{}.dwg", "x"),
        ("text of an embedded file", "a.txt", "The {} turns."),
    ):
        if word := words.get(place):
            name = name.format(word)
            stream = file.add(file.stream(content.format(word), "/Type /EmbeddedFile"))
            spec = file.add(f"<< /Type /Filespec /F ({name}) /UF ({name}) /EF << /F {stream} 0 R >> >>")
            embedded += f"({name}) {spec} 0 R "
    if embedded:
        catalog.append(f"/Names << /EmbeddedFiles << /Names [{embedded}] >> >>")
    file.objects[0] = f"<< /Type /Catalog /Pages 2 0 R {' '.join(catalog)} >>"
    entries = " ".join(f"/{key} ({words[place]})" for place, (_, key) in INFO.items() if place in words)
    return file.done(file.add(f"<< {entries} >>"))


TABLE = FormatTable(
    "plan.pdf",
    "ISO 32000-1:2008",
    {
        place: section
        for table in (SHOWN, ANNOTATIONS, APPEARANCES, FIELDS, INFO, OTHER)
        for place, (section, _) in table.items()
    },
    write,
)
