"""PresentationML: the places are cited by sections of ECMA-376 part 1 where no other document is named."""

from tests.consumers.parsing.conservation.office_parts import Related, chart, diagram, element, package
from tests.consumers.parsing.conservation.places import FormatTable, Words


def paragraph(inner: str) -> str:
    return f"<a:p>{inner}</a:p>"


def run(text: str) -> str:
    return f"<a:r><a:t>{text}</a:t></a:r>"


def shape(text: str, placeholder: str = "", described: str = "", inner: str = "") -> str:
    mark = f"<p:ph type='{placeholder}'/>" if placeholder else ""
    return (
        f"<p:sp><p:nvSpPr><p:cNvPr id='2' name='s'{described}/><p:cNvSpPr/><p:nvPr>{mark}</p:nvPr></p:nvSpPr>"
        f"<p:txBody><a:bodyPr/>{inner or paragraph(run(text))}</p:txBody></p:sp>"
    )


def frame(inner: str) -> str:
    return (
        "<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id='3' name='f'/></p:nvGraphicFramePr><a:graphic><a:graphicData>"
        f"{inner}</a:graphicData></a:graphic></p:graphicFrame>"
    )


def row(*cells: str) -> str:
    return "<a:tr>" + "".join(f"<a:tc><a:txBody>{paragraph(run(cell))}</a:txBody></a:tc>" for cell in cells) + "</a:tr>"


SLIDE = {
    "title": ("19.7.10", lambda word: shape(word, "title")),
    "text": ("19.3.1.51", shape),
    "placeholder": ("19.3.1.36", lambda word: shape(word, "body")),
    "text behind a soft break": (
        "21.1.2.2.1",
        lambda word: shape("", inner=paragraph(f"{run('a')}<a:br/>{run(word)}")),
    ),
    "field": (
        "21.1.2.2.4",
        lambda word: shape("", inner=paragraph(f"<a:fld type='datetime1'><a:t>{word}</a:t></a:fld>")),
    ),
    "footer": ("19.7.10", lambda word: shape(word, "ftr")),
    "alternative text": ("19.3.1.12", lambda word: shape("a", described=f" descr='{word}'")),
    "alternative text of a picture": (
        "19.3.1.12",
        lambda word: f"<p:pic><p:nvPicPr><p:cNvPr id='4' name='p' title='{word}'/></p:nvPicPr></p:pic>",
    ),
    "alternative text of a group": (
        "19.3.1.22",
        lambda word: f"<p:grpSp><p:nvGrpSpPr><p:cNvPr id='6' name='g' descr='{word}'/></p:nvGrpSpPr></p:grpSp>",
    ),
    "shape in groups": ("19.3.1.22", lambda word: f"<p:grpSp><p:grpSp>{shape(word)}</p:grpSp></p:grpSp>"),
    "connector": (
        "19.3.1.19",
        lambda word: f"<p:cxnSp><p:nvCxnSpPr><p:cNvPr id='5' name='c' descr='{word}'/></p:nvCxnSpPr></p:cxnSp>",
    ),
    "cell": ("21.1.3.16", lambda word: frame(f"<a:tbl>{row('Year', 'Place')}{row('1911', word)}</a:tbl>")),
    "name of a column": ("21.1.3.16", lambda word: frame(f"<a:tbl>{row('Year', word)}{row('1911', 'Tarn')}</a:tbl>")),
    "formula": (
        "22.1.2.77",
        lambda word: shape("", inner=paragraph(f"<m:oMath><m:r><m:t>{word}</m:t></m:r></m:oMath>")),
    ),
    "alternative": (
        "part 3, 7.6",
        lambda word: f"<mc:AlternateContent><mc:Choice Requires='p14'>{shape(word)}</mc:Choice></mc:AlternateContent>",
    ),
    "fallback that says more": (
        "part 3, 7.6",
        lambda word: (
            f"<mc:AlternateContent><mc:Choice Requires='x'/><mc:Fallback>{shape(word)}</mc:Fallback></mc:AlternateContent>"
        ),
    ),
}
LINKED = {
    "title of a chart": ("21.2.2.210", "chart", lambda word: chart(title=word)),
    "name of a series": ("21.2.2.174", "chart", lambda word: chart(series=word)),
    "category of a chart": ("21.2.2.24", "chart", lambda word: chart(category=word)),
    "value of a chart": ("21.2.2.224", "chart", lambda word: chart(value=word)),
    "diagram": ("21.4.2.10", "diagramData", diagram),
}
NOTES = {
    "notes": ("13.3.5", lambda word: shape(word, "body")),
    "other shape on notes": ("13.3.5", shape),
    "header of notes": ("19.7.10", lambda word: shape(word, "hdr")),
}
COMMENTS = {
    "comment": (
        "19.4.4",
        "comments",
        lambda word: element("p:cmLst", f"<p:cm authorId='0'><p:text>{word}</p:text></p:cm>"),
    ),
    "reply": (
        "[MS-PPTX] 2.16.3",
        "comments",
        lambda word: element("p:cmLst", f"<p:reply><p:txBody>{paragraph(run(word))}</p:txBody></p:reply>"),
    ),
}
PATTERNS = {
    "text of a layout": ("19.3.1.39", lambda word: shape(word)),
    "prompt of a layout": ("19.7.10", lambda word: shape(word, "body")),
    "footer of a layout": ("19.7.10", lambda word: shape(word, "ftr")),
}
MASTERS = {
    "text of a master": ("19.3.1.42", "slideMaster"),
    "text of an unused master": ("19.3.1.42", "slideMaster"),
    "footer of the notes": ("19.3.1.27", "notesMaster"),
    "footer of handouts": ("19.3.1.24", "handoutMaster"),
}
OTHERS = {"section": "[MS-PPTX] 2.6.1.2", "second slide": "19.3.1.38", "hidden slide": "19.3.1.38"}


def slide(inner: str, tag: str = "p:sld") -> str:
    return element(tag, f"<p:cSld><p:spTree>{inner}</p:spTree></p:cSld>").replace(f"</{tag} show='0'>", "</p:sld>")


def write(given: Words) -> bytes:
    parts: dict[str, tuple[str, Related]] = {}
    related: dict[str, tuple[str, str]] = {}
    shapes = "".join(make(given[place]) for place, (_, make) in SLIDE.items() if place in given)
    for number, (place, (_, kind, make)) in enumerate({**LINKED, **COMMENTS}.items()):
        if place not in given:
            continue
        name, key = f"linked{number}.xml", f"r{number}"
        parts[f"ppt/slides/{name}"] = (make(given[place]), {})
        related[key] = (kind, name)
        if place in LINKED:
            shapes += frame(f"<dgm:relIds r:dm='{key}'/>" if kind == "diagramData" else f"<c:chart r:id='{key}'/>")
    if notes := "".join(make(given[place]) for place, (_, make) in NOTES.items() if place in given):
        parts["ppt/slides/notes.xml"] = (slide(notes, "p:notes"), {})
        related["notes"] = ("notesSlide", "notes.xml")
    layout = "".join(make(given[place]) for place, (_, make) in PATTERNS.items() if place in given)
    masters: dict[str, tuple[str, str]] = {}
    for number, (place, (_, kind)) in enumerate(MASTERS.items()):
        text = shape(given[place], "ftr" if "footer" in place else "") if place in given else ""
        parts[f"ppt/slides/master{number}.xml"] = (slide(text, f"p:{kind[:-6]}Mst" if number else "p:sldMaster"), {})
        masters[f"m{number}"] = (kind, f"slides/master{number}.xml")
    parts["ppt/slides/layout.xml"] = (slide(layout, "p:sldLayout"), {"m": ("slideMaster", "master0.xml")})
    related["layout"] = ("slideLayout", "layout.xml")
    parts["ppt/slides/slide1.xml"] = (slide(shapes), related)
    parts["ppt/slides/slide2.xml"] = (slide(shape(given.get("second slide", "The end"))), {})
    hidden = slide(shape(given.get("hidden slide", "The end"))).replace("<p:sld ", "<p:sld show='0' ", 1)
    parts["ppt/slides/slide3.xml"] = (hidden, {})
    ids = "".join(f"<p:sldId id='{256 + number}' r:id='s{number}'/>" for number in (1, 2, 3))
    section = (
        f"<p14:section name='{given['section']}'><p14:sldId id='257'/></p14:section>" if "section" in given else ""
    )
    parts["ppt/presentation.xml"] = (
        element("p:presentation", f"<p:sldIdLst>{ids}</p:sldIdLst>{section}"),
        {f"s{number}": ("slide", f"slides/slide{number}.xml") for number in (1, 2, 3)} | masters,
    )
    return package("ppt/presentation.xml", parts)


TABLE = FormatTable(
    "deck.pptx",
    "ECMA-376, 5th edition",
    {
        place: section
        for table in (SLIDE, LINKED, NOTES, COMMENTS, PATTERNS, MASTERS)
        for place, (section, *_) in table.items()
    }
    | OTHERS,
    write,
)
