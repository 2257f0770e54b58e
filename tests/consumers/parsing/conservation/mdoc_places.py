"""Man pages of BSD: the places are cited by macros of mdoc(7)."""

from tests.consumers.parsing.conservation.places import text_table

HEAD = {
    "date": ("Dd", ".Dd May {}"),
    "name": ("Dt", ".Dt {} 1"),
    "volume": ("Dt", ".Dt MILL 1 {}"),
    "system": ("Os", ".Os {} 2"),
}
BODY = {
    "section": ("Sh", ".Sh {}\nIt turns."),
    "subsection": ("Ss", ".Ss {}\nIt turns."),
    "description": ("Nd", ".Nm mill\n.Nd grinds {}"),
    "second name": ("Nm", ".Nm {}"),
    "paragraph": ("Pp", ".Pp\nIt is {}."),
    "flag": ("Fl", ".Fl {}"),
    "argument": ("Ar", ".Op Fl v Ar {}"),
    "emphasis": ("Em", ".Em {}"),
    "no macro": ("No", ".Em mill No {}"),
    "function": ("Fn", '.Fn turn "int {}"'),
    "type": ("Ft", ".Ft {}\n.Fn turn"),
    "function in parts": ("Fo", ".Fo turn\n.Fa {}\n.Fc"),
    "declaration": ("Vt", ".Vt {}"),
    "header": ("In", ".In {}.h"),
    "reference": ("Xr", ".Xr {} 1"),
    "section reference": ("Sx", ".Sx {}"),
    "quoted": ("Dq", ".Dq {}"),
    "quoted block": ("Do", ".Do {}\n.Dc"),
    "enclosed": ("En", ".En {}"),
    "prefix": ("Pf", ".Pf {} Ar b"),
    "link": ("Lk", ".Lk https://x.example {}"),
    "mail": ("Mt", ".Mt {}@x.example"),
    "author": ("An", ".An Ann {}"),
    "split authors": ("An", ".An -split\n.An {}"),
    "literal line": ("Dl", ".Dl {}"),
    "indented line": ("D1", ".D1 {}"),
    "display": ("Bd", ".Bd -literal\n{}\n.Ed"),
    "filled display": ("Bd", ".Bd -filled\n{}\n.Ed"),
    "tag": ("It", ".Bl -tag -width a\n.It {}\nIt turns.\n.El"),
    "item": ("It", ".Bl -bullet\n.It\n{}\n.El"),
    "column": ("It", ".Bl -column a b\n.It mill Ta {}\n.El"),
    "column on a line": ("Ta", ".Bl -column a b\n.It mill\n.Ta {}\n.El"),
    "reference to a book": ("%T", ".Rs\n.%A Ann\n.%T {}\n.Re"),
    "quotation mark": ("%Q", ".Rs\n.%Q {}\n.Re"),
    "library": ("Lb", ".Lb {}"),
    "version": ("Bx", ".Bx {}"),
    "version of FreeBSD": ("Fx", ".Fx {}"),
    "exit status": ("Ex", ".Ex -std {}"),
    "return value": ("Rv", ".Rv -std {}"),
    "standard": ("St", ".St -p1003.1 {}"),
    "keyword": ("Cm", ".Cm {}"),
    "size of an option": ("Oo", ".Oo\n.Ar {}\n.Oc"),
    "error": ("Er", ".Er {}"),
    "mode of type": ("Sm", ".Sm off\n.Ar {}\n.Sm on"),
    "font block": ("Bf", ".Bf -emphasis\n{}\n.Ef"),
    "keep": ("Bk", ".Bk -words\n{}\n.Ek"),
    "escape": ("Es", ".Es < >\n.En {}"),
    "unknown": ("MACRO SYNTAX", ".Zz {}"),
}

TABLE = text_table(
    "mill.8", "mdoc(7)", BODY, head=HEAD, between=(".Sh NAME\n.Nm mill\n.Nd grinds corn", ""), joint="\n"
)
