"""OpenDocument slides: the places are cited by sections of part 3 of version 1.3."""

from tests.consumers.parsing.conservation.opendocument_markup import frame, opendocument, row
from tests.consumers.parsing.conservation.places import FormatTable, Words


def box(word: str) -> str:
    return f"<draw:text-box><text:p>{word}</text:p></draw:text-box>"


SLIDE = {
    "title": ("10.2.4", lambda word: f"<draw:frame presentation:class='title'>{box(word)}</draw:frame>"),
    "text": ("10.4.3", lambda word: frame(box(word))),
    "outline": ("10.4.3", lambda word: f"<draw:frame presentation:class='outline'>{box(word)}</draw:frame>"),
    "list": (
        "5.3.1",
        lambda word: frame(
            f"<draw:text-box><text:list><text:list-item><text:p>{word}</text:p></text:list-item></text:list></draw:text-box>"
        ),
    ),
    "shape": ("10.3.2", lambda word: f"<draw:custom-shape><text:p>{word}</text:p></draw:custom-shape>"),
    "shape in a group": ("10.3.15", lambda word: f"<draw:g><draw:line><text:p>{word}</text:p></draw:line></draw:g>"),
    "description of a group": ("10.3.17", lambda word: f"<draw:g><svg:desc>{word}</svg:desc></draw:g>"),
    "cell": ("9.1.4", lambda word: frame(f"<table:table>{row('Year', 'Place')}{row('1911', word)}</table:table>")),
    "comment": ("14.1", lambda word: f"<office:annotation><text:p>{word}</text:p></office:annotation>"),
    "notes": ("16.18", lambda word: f"<presentation:notes>{frame(box(word))}</presentation:notes>"),
}
BEFORE = {
    "declared footer": ("10.9.3.3", "<presentation:footer-decl presentation:name='f'>{}</presentation:footer-decl>"),
    "declared header": ("10.9.3.2", "<presentation:header-decl presentation:name='h'>{}</presentation:header-decl>"),
}
MASTER = {
    "text of the master": ("16.9", lambda word: frame(box(word))),
    "footer of the master": ("19.389", lambda word: f"<draw:frame presentation:class='footer'>{box(word)}</draw:frame>"),
    "prompt of the master": ("19.397", lambda word: f"<draw:frame presentation:placeholder='true'>{box(word)}</draw:frame>"),
    "notes of the master": ("16.18", lambda word: f"<presentation:notes>{frame(box(word))}</presentation:notes>"),
    "handouts": ("16.10", lambda word: f"</style:master-page><style:handout-master>{frame(box(word))}"
                         "</style:handout-master><style:master-page style:name='n'>"),
}  # fmt: skip
OTHERS = {"name of a slide": "19.197"}


def write(given: Words) -> bytes:
    before = "".join(markup.format(given[place]) for place, (_, markup) in BEFORE.items() if place in given)
    shapes = "".join(make(given[place]) for place, (_, make) in SLIDE.items() if place in given)
    named = f"<draw:page draw:name='{given.get('name of a slide', 'page2')}'>{frame(box('The end'))}</draw:page>"
    master = "".join(make(given[place]) for place, (_, make) in MASTER.items() if place in given)
    return opendocument(
        "presentation", f"{before}<draw:page draw:name='page1'>{shapes}</draw:page>{named}", margins=master
    )


TABLE = FormatTable(
    "deck.odp",
    "OpenDocument 1.3, part 3",
    {place: section for table in (SLIDE, BEFORE, MASTER) for place, (section, _) in table.items()} | OTHERS,
    write,
)
