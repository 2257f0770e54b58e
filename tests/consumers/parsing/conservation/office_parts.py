"""Writes Office Open XML files from the markup of their parts."""

from collections.abc import Mapping

from tests.consumers.parsing.samples import archive

NAMESPACES = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "p": "http://schemas.openxmlformats.org/presentationml/2006/main",
    "s": "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "xdr": "http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing",
    "dgm": "http://schemas.openxmlformats.org/drawingml/2006/diagram",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "v": "urn:schemas-microsoft-com:vml",
    "o": "urn:schemas-microsoft-com:office:office",
    "p14": "http://schemas.microsoft.com/office/powerpoint/2010/main",
    "tc": "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments",
}
_DECLARED = " ".join(f'xmlns:{prefix}="{name}"' for prefix, name in NAMESPACES.items())
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
Related = Mapping[str, tuple[str, str]]
"""The kind and the target of each relation, by its id."""


def element(tag: str, inner: str) -> str:
    """A root element that declares all namespaces."""
    name = tag.split()[0]
    return f"<{tag} {_DECLARED}>{inner}</{name}>"


def package(main: str, parts: Mapping[str, tuple[str, Related]], properties: str = "", custom: str = "") -> bytes:
    """A file with its main part and other parts, each with its relations."""
    kept: dict[str, str | bytes] = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        + "".join(
            f'<Override PartName="/{name}" ContentType="{_content_type(name)}"/>'
            for name in parts
            if _content_type(name)
        )
        + "</Types>",
        "_rels/.rels": _relations({"r1": ("officeDocument", f"/{main}")}),
        "docProps/core.xml": '<cp:coreProperties xmlns:dc="http://purl.org/dc/elements/1.1/" '
        f'xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties">{properties}'
        "</cp:coreProperties>",
        "docProps/custom.xml": '<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/custom-properties" '
        f'xmlns:vt="http://schemas.openxmlformats.org/officeDocument/2006/docPropsVTypes">{custom}</Properties>',
    }
    for name, (markup, related) in parts.items():
        kept[name] = markup
        if related:
            folder, _, base = name.rpartition("/")
            kept[f"{folder}/_rels/{base}.rels"] = _relations(related)
    return archive(kept)


def chart(title: str = "", series: str = "", category: str = "", value: str = "1", axis: str = "") -> str:
    def text(word: str) -> str:
        return (
            f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{word}</a:t></a:r></a:p></c:rich></c:tx></c:title>" if word else ""
        )

    return element(
        "c:chartSpace",
        f"<c:chart>{text(title)}<c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>{series}"
        f"</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache><c:pt idx='0'><c:v>{category}</c:v></c:pt>"
        f"</c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache><c:pt idx='0'><c:v>{value}</c:v></c:pt></c:numCache>"
        f"</c:numRef></c:val></c:ser></c:barChart><c:catAx>{text(axis)}</c:catAx></c:plotArea></c:chart>",
    )


def diagram(word: str) -> str:
    return element(
        "dgm:dataModel",
        f"<dgm:ptLst><dgm:pt><dgm:t><a:p><a:r><a:t>{word}</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst>",
    )


def _relations(related: Related) -> str:
    inner = "".join(
        f'<Relationship Id="{key}" Type="{NAMESPACES["r"]}/{kind}" Target="{target}"/>'
        for key, (kind, target) in related.items()
    )
    return f'<Relationships xmlns="{_RELATIONS}">{inner}</Relationships>'


def _content_type(name: str) -> str:
    """What openpyxl wants to know of a workbook's parts."""
    start = "application/vnd.openxmlformats-officedocument.spreadsheetml."
    if name == "xl/workbook.xml":
        return f"{start}sheet.main+xml"
    if name == "xl/sharedStrings.xml":
        return f"{start}sharedStrings+xml"
    return f"{start}worksheet+xml" if name.startswith("xl/worksheets/") else ""
