"""RTF: the places are cited by the headings of specification 1.9.1."""

from tests.consumers.parsing.conservation.places import FormatTable, Words

BODY = {
    "text": ("Document Text", r"\pard The {} turns.\par "),
    "heading": ("Paragraph Formatting Properties", r"\pard\outlinelevel0 {}\par\pard Below.\par "),
    "hidden text": ("Font (Character) Formatting Properties", r"{{\v {}}}\par "),
    "deleted text": ("Track Changes (Revision Marks)", r"{{\deleted {}}}\par "),
    "cell": (
        "Table Definitions",
        r"\trowd\pard\intbl Year\cell Place\cell\row\trowd\pard\intbl 1911\cell {}\cell\row\pard ",
    ),
    "nested cell": ("Nested Tables", r"\pard\intbl\itap2 {}\nestcell\nestrow\pard\intbl b\cell\row\pard "),
    "label of an item": ("Bullets and Numbering", r"{{\listtext {}\tab}}Item\par "),
    "label of an old item": ("Bullets and Numbering", r"{{\pntext {}\tab}}Item\par "),
    "footnote": ("Footnotes", r"Mork{{\footnote {}}} built it.\par "),
    "endnote": ("Footnotes", r"Mork{{\footnote\ftnalt {}}} built it.\par "),
    "comment": ("Comments (Annotations)", r"a{{\*\atnauthor Bo}}{{\*\annotation {}}}\par "),
    "author of a comment": ("Comments (Annotations)", r"a{{\*\atnauthor {}}}{{\*\annotation b}}\par "),
    "result of a field": ("Fields", r"{{\field{{\*\fldinst DATE}}{{\fldrslt {}}}}}\par "),
    "chosen entry of a form": (
        "Form Fields",
        r"{{\field{{\*\fldinst FORMDROPDOWN{{\*\formfield{{\*\ffl {}}}}}}}{{\fldrslt}}}}\par ",
    ),
    "default of a form": (
        "Form Fields",
        r"{{\field{{\*\fldinst FORMTEXT{{\*\formfield{{\*\ffdeftext {}}}}}}}{{\fldrslt}}}}\par ",
    ),
    "help of a form": (
        "Form Fields",
        r"{{\field{{\*\fldinst FORMTEXT{{\*\formfield{{\*\ffhelptext {}}}}}}}{{\fldrslt}}}}\par ",
    ),
    "text box": ("Drawing Objects", r"{{\shp{{\*\shpinst{{\shptxt {}\par}}}}}}\par "),
    "description of a shape": (
        "Drawing Object Properties",
        r"{{\shp{{\*\shpinst{{\sp{{\sn wzDescription}}{{\sv {}}}}}}}}}\par ",
    ),
    "word art": ("Drawing Object Properties", r"{{\shp{{\*\shpinst{{\sp{{\sn gtextUNICODE}}{{\sv {}}}}}}}}}\par "),
    "result of an object": ("Objects", r"{{\object{{\*\objdata 00}}{{\result {}}}}}\par "),
    "entry of the index": ("Index Entries", r"a{{\xe {}}}\par "),
    "entry of the table of contents": ("Table of Contents Entries", r"a{{\tc {}}}\par "),
    "text behind a picture": ("Pictures", r"{{\pict\pngblip 89504e47}}{}\par "),
    "text behind binary data": ("Pictures", "{{\\pict\\bin4 {{{{\\\\}} {}\\par "),
    "text for newer readers": ("Unicode RTF", r"{{\upr{{a}}{{\*\ud{{{}}}}}}}\par "),
}
MARGINS = {
    "header": ("Headers and Footers", r"{{\header {}\par}}"),
    "footer": ("Headers and Footers", r"{{\footer {}\par}}"),
    "header of the first page": ("Headers and Footers", r"{{\headerf {}\par}}"),
    "footer of left pages": ("Headers and Footers", r"{{\footerl {}\par}}"),
}
INFO = {
    "title": ("Information Group", r"{{\title {}}}"),
    "subject": ("Information Group", r"{{\subject {}}}"),
    "author": ("Information Group", r"{{\author {}}}"),
    "last author": ("Information Group", r"{{\operator {}}}"),
    "company": ("Information Group", r"{{\*\company {}}}"),
    "keywords": ("Information Group", r"{{\keywords {}}}"),
    "description": ("Information Group", r"{{\doccomm {}}}"),
}
USER = {"named property": ("User-Defined Properties", r"{{\propname Client}}\proptype30{{\staticval {}}}")}


def write(given: Words) -> bytes:
    def filled(table: dict[str, tuple[str, str]]) -> str:
        return "".join(markup.format(given[place]) for place, (_, markup) in table.items() if place in given)

    start = r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Times;}}"
    info = rf"{{\info{filled(INFO)}}}{{\*\userprops {filled(USER)}}}"
    return f"{start}{info}{filled(MARGINS)}{filled(BODY)}\\pard The end.\\par}}".encode()


TABLE = FormatTable(
    "letter.rtf",
    "Rich Text Format 1.9.1",
    {place: section for table in (BODY, MARGINS, INFO, USER) for place, (section, _) in table.items()},
    write,
)
