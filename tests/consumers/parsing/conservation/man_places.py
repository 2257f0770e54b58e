r"""Man pages: the places are cited by macros of groff_man(7) and requests of groff(7); `tbl` is tbl(1)."""

from tests.consumers.parsing.conservation.places import text_table

HEAD = {
    "comment above": (r"\"", r".\" {}"),
    "name of the page": ("TH", '.TH {} 1 "May 2024" "mill 2" "Mills"'),
    "source": ("TH", '.TH MILL 1 "May 2024" "{} 2" "Mills"'),
    "manual": ("TH", '.TH MILL 1 "May 2024" "mill 2" "{}"'),
    "string": ("ds", ".ds MI {}\nThe \\*(MI stands."),
    "unused string": ("ds", ".ds WE {}"),
    "body of a macro": ("de", ".de QT\n{} \\$1\n.."),
    "ignored": ("ig", ".ig\n{}\n.."),
    "for paper": ("if", ".if t {}"),
    "for paper, many lines": ("if", ".if t \\{\n{}\n.\\}"),
    "else": ("ie", ".ie n mill\n.el {}"),
}
BODY = {
    "section": ("SH", ".SH {}\nIt turns."),
    "section on the next line": ("SH", ".SH\n{}\nIt turns."),
    "subsection": ("SS", ".SS {}\nIt turns."),
    "text": ("text", "The {} stands."),
    "comment": (r"\"", 'The mill. \\" {}'),
    "comment on a line": (r"\#", "The mill. \\# {}"),
    "paragraph": ("PP", ".PP\nIt is {}."),
    "bold": ("B", ".B {}"),
    "bold on the next line": ("B", ".B\n{}"),
    "alternating": ("BR", ".BR {} (1)"),
    "fonts": (r"\f", r"The \fB{}\fP stands."),
    "small": ("SM", ".SM {}"),
    "tag": ("TP", ".TP\n{}\nIt turns."),
    "bold tag": ("TP", ".TP\n.B {}\nIt turns."),
    "text of a tag": ("TP", ".TP\nwheel\nIt is {}."),
    "second tag": ("TQ", ".TP\nwheel\n.TQ\n{}\nIt turns."),
    "tag without text": ("TP", ".TP\n{}\n.PP\nMore."),
    "item": ("IP", ".IP \\(bu\n{}"),
    "tag of an item": ("IP", ".IP {} 4\nIt turns."),
    "hanging": ("HP", ".HP\n{}"),
    "indented": ("RS", ".RS\n{}\n.RE"),
    "second page": ("TH", ".TH {} 8\nIt turns."),
    "not filled": ("nf", ".nf\n{}\n.fi"),
    "example": ("EX", ".EX\n{}\n.EE"),
    "link": ("UR", ".UR https://x.example\n{}\n.UE ."),
    "behind a link": ("UE", ".UR https://x.example\nmill\n.UE {}"),
    "link without text": ("UR", ".UR {}\n.UE"),
    "address": ("MT", ".MT a@x.example\n{}\n.ME"),
    "reference": ("MR", ".MR {} 1 ."),
    "synopsis": ("SY", ".SY {}\n.OP \\-v\n.YS"),
    "option": ("OP", ".SY mill\n.OP \\-\\-{} file\n.YS"),
    "cell": ("tbl", ".TS\nl l.\nName\tYear\n{}\t1911\n.TE"),
    "head of a column": ("tbl", ".TS\nl l.\n{}\tYear\nAnn\t1911\n.TE"),
    "head of an empty column": ("tbl", ".TS\nl l.\nName\t{}\nAnn\t\nBo\t\n.TE"),
    "block of text in a cell": ("tbl", ".TS\nl l.\nT{\n{}\nT}\t1911\n.TE"),
    "cell behind another sign": ("tbl", ".TS\ntab(@);\nl l.\n1911@{}\n.TE"),
    "macro in a cell": ("tbl", ".TS\nl l.\nT{\n.MR {} 1\nT}\t1911\n.TE"),
    "table that does not end": ("tbl", ".TS\nl l.\n{}\t1911\n.SH WEIR\nIt turns."),
    "equation": ("eqn", ".EQ\n{} over 2\n.EN"),
    "diagram": ("pic", '.PS\nbox "{}"\n.PE'),
    "title in three parts": ("tl", ".tl 'mill'{}'1'"),
    "entry of an index": ("pod2man: IX", '.IX Item "{}"'),
    "unknown macro": ("5.24.3", ".QT {}"),
    "unknown macro of many words": ("5.24.3", '.Sq2 "the {}" b'),
    "line with the other sign": ("5.6.4", "'B {}"),
    "continued": (r"\c", "The mill\\c\n{} stands."),
}

TAIL = {"last line that goes on": ("5.6.4", "It is {} \\")}

TABLE = text_table(
    "mill.1", "groff_man(7)", BODY, head=HEAD, tail=TAIL, between=(".SH NAME\nmill \\- grinds corn", ""), joint="\n"
)
