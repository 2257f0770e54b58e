"""Writes OpenDocument files of every kind, packed or flat, from the markup of their bodies."""

from collections.abc import Mapping

from tests.consumers.parsing.samples import archive

_NAMES = {
    "office": "office", "text": "text", "table": "table", "draw": "drawing", "style": "style", "svg": "svg-compatible",
    "meta": "meta", "form": "form", "presentation": "presentation", "chart": "chart",
}  # fmt: skip
DECLARED = " ".join(
    [f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for prefix, name in _NAMES.items()]
    + ['xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"']
)

NO_PICTURES: Mapping[str, bytes] = {}


def opendocument(
    kind: str, body: str, meta: str = "", margins: str = "", styles: str = "", chart: str = "",
    pictures: Mapping[str, bytes] = NO_PICTURES,
) -> bytes:  # fmt: skip
    """A file of a kind (`text`, `spreadsheet`, `presentation`); `margins` is the inside of its master page.

    `pictures` are the pictures in it by name.
    """
    masters = (
        f"<office:master-styles><style:master-page style:name='m'>{margins}</style:master-page></office:master-styles>"
    )
    content = f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    parts: dict[str, str | bytes] = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": f"<office:document-content {DECLARED}>"
        f"<office:automatic-styles>{styles}</office:automatic-styles>{content}"
        "</office:document-content>",
        "styles.xml": f"<office:document-styles {DECLARED}>{masters}</office:document-styles>",
        "meta.xml": f"<office:document-meta {DECLARED}><office:meta>{meta}</office:meta></office:document-meta>",
        "META-INF/manifest.xml": "<manifest/>",
    }
    parts |= pictures
    if chart:
        inner = f"<office:body><office:chart><chart:chart>{chart}</chart:chart></office:chart></office:body>"
        parts["Object 1/content.xml"] = f"<office:document-content {DECLARED}>{inner}</office:document-content>"
    return archive(parts)


def row(*cells: str) -> str:
    return (
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in cells)
        + ("</table:table-row>")
    )


def frame(inner: str) -> str:
    return f"<draw:frame>{inner}</draw:frame>"
