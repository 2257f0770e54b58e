"""DrawingML of Word, PowerPoint and Excel: text, alternative text, charts, diagrams (ECMA-376 part 1, 20–21)."""

from collections.abc import Iterator
from typing import Any

from consumers.omissions import OmissionKind
from consumers.parsing.decoding import clean_text
from consumers.parsing.formats.office.formula import formula_text
from consumers.parsing.formats.office.package import ALTERNATE, OfficePackage, chosen, relation_id, whole_number
from consumers.parsing.outline import Outline
from consumers.parsing.table_rows import row_text

Element = Any
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_EXTENDED_CHART = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
_VML = "{urn:schemas-microsoft-com:vml}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MAX_POINTS = 100_000


def paragraphs(body: Element) -> Iterator[str]:
    """Yields the paragraphs of a text body. A soft break becomes a line break; slide numbers are left out."""
    for paragraph in body.iter(f"{A}p"):
        text = paragraph_text(paragraph)
        if text:
            yield text


def paragraph_text(paragraph: Element) -> str:
    parts: list[str] = []

    def take(node: Element) -> None:
        for child in node:
            if child.tag == f"{A}br":
                parts.append("\n")
            elif child.tag == f"{A}tab":
                parts.append("\t")
            elif child.tag == f"{A}t":
                parts.append(child.text or "")
            elif child.tag == f"{A}fld" and (child.get("type") or "").startswith("slidenum"):
                continue
            elif child.tag == f"{_MATH}oMath":
                parts.append(formula_text(child))
            elif child.tag == ALTERNATE:
                for each in chosen(child, all_words):
                    take(each)
            elif child.tag not in (f"{A}rPr", f"{A}pPr", f"{A}endParaRPr"):
                take(child)

    take(paragraph)
    return clean_text("".join(parts)).strip()


def all_words(node: Element) -> str:
    """Returns all text of an element, for comparing alternatives."""
    return " ".join(node.itertext())


def alternative_texts(node: Element) -> Iterator[str]:
    """Yields the titles and descriptions of the pictures, shapes and charts below an element (20.1.2.2.8).

    Each text is yielded once, because Word stores a picture's description twice: for the picture and for its frame.
    """
    seen: set[str] = set()
    for each in node.iter():
        if isinstance(each.tag, str) and each.tag.endswith(("}docPr", "}cNvPr")):
            for text in (each.get("title"), each.get("descr")):
                if text and text.strip() and text not in seen:
                    seen.add(text)
                    yield clean_text(text.strip())


def add_pictures(
    node: Element,
    part: str,
    package: OfficePackage,
    outline: Outline,
    *,
    described: bool,
    page: int | None = None,
    sheet: str | None = None,
) -> None:
    """Adds the pictures below an element of `part` to the outline. Reports pictures that are not in the file."""
    for each in node.iter(f"{A}blip", f"{_VML}imagedata"):
        relation = package.relations(part).get(relation_id(each, "embed") or relation_id(each))
        image = None if relation is None or relation.external else package.picture(relation.target)
        if image is not None and relation is not None:
            name = relation.target.rpartition("/")[2]
            outline.picture(image, name, described=described, page=page, sheet=sheet)
        elif not described:
            outline.omissions.add(OmissionKind.PICTURE)


def linked_texts(node: Element, part: str, package: OfficePackage) -> Iterator[str]:
    """Yields the texts of the charts and diagrams that are referenced below `node`."""
    for each in node.iter(f"{C}chart", f"{_EXTENDED_CHART}chart", f"{_DIAGRAM}relIds"):
        attribute = "dm" if each.tag == f"{_DIAGRAM}relIds" else "id"
        relation = package.relations(part).get(relation_id(each, attribute))
        root = None if relation is None or relation.external else package.tree(relation.target)
        if relation is None or root is None:
            continue
        if attribute == "dm":
            yield from paragraphs(root)
        else:
            yield from _chart(root)
            for drawing in package.related(relation.target, "chartUserShapes"):
                shapes = package.tree(drawing)
                if shapes is not None:
                    yield from paragraphs(shapes)


def _chart(root: Element) -> Iterator[str]:
    """Yields titles and labels, then each category with the values of all series."""
    for title in root.iter(f"{A}p"):
        if text := paragraph_text(title):
            yield text
    for title in root.iter(f"{C}title"):  # a title that refers to a cell (21.2.2.211)
        yield from _points(title.find(f"{C}tx"))
    series = list(root.iter(f"{C}ser"))
    names = [" ".join(_points(each.find(f"{C}tx"))) for each in series]
    rows: dict[tuple[str, str], list[str]] = {}
    for at, each in enumerate(series):
        categories = _numbered(each.find(f"{C}cat"), each.find(f"{C}xVal"))
        for kind in ("val", "yVal", "bubbleSize"):
            values = _numbered(each.find(f"{C}{kind}"))
            for place in sorted(categories.keys() | values.keys(), key=whole_number):
                if kind == "bubbleSize" and place not in values:
                    continue
                row = rows.setdefault((place, categories.get(place, "")), [""] * len(series))
                row[at] = " ".join(filter(None, (row[at], values.get(place, ""))))
        if not rows and names[at]:
            yield names[at]
    for (_, category), values_of_row in rows.items():
        text = row_text(names, values_of_row)
        yield f"{category}: {text}" if category and text else category or text
    if root.tag.startswith(_EXTENDED_CHART):
        yield from _extended_chart(root)


def _extended_chart(root: Element) -> Iterator[str]:
    """Yields the data of the chart types that Office 2016 added ([MS-ODRAWXML] 2.24)."""
    for each in root.iter(f"{_EXTENDED_CHART}v", f"{_EXTENDED_CHART}pt"):
        if each.text and each.text.strip():
            yield clean_text(each.text.strip())


def _points(node: Element | None) -> Iterator[str]:
    for value in () if node is None else node.iter(f"{C}v"):
        if value.text and value.text.strip():
            yield clean_text(value.text.strip())


def _numbered(*nodes: Element | None) -> dict[str, str]:
    """Returns the cached points by index. If categories have several levels (21.2.2.102), their names are joined."""
    found: dict[str, str] = {}
    for node in nodes:
        for point in () if node is None else node.iter(f"{C}pt"):
            text = " ".join(_points(point))
            place = point.get("idx") or ""
            if text and len(found) < _MAX_POINTS:
                found[place] = f"{text} {found[place]}" if place in found else text
    return found
