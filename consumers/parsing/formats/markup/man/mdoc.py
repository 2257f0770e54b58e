"""mdoc(7), BSD's macros for man pages: converts one line of macros to text."""

_AROUND = {
    "Op": "[]", "Bq": "[]", "Pq": "()", "Dq": "“”", "Sq": "‘’", "Qq": '""', "Ql": "‘’", "Aq": "<>", "Brq": "{}", "Eq": "  ",
}  # fmt: skip
_OPENING = {"Oo": "[", "Bo": "[", "Po": "(", "Do": "“", "So": "‘", "Qo": '"', "Ao": "<", "Bro": "{"}
_CLOSING = {"Oc": "]", "Bc": "]", "Pc": ")", "Dc": "”", "Sc": "’", "Qc": '"', "Ac": ">", "Brc": "}", "Fc": ")"}
_NAMES = {
    "Ux": "UNIX", "Bx": "BSD", "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD", "Dx": "DragonFly", "Bsx": "BSD/OS",
    "At": "AT&T UNIX",
}  # fmt: skip
_PLAIN = frozenset(
    """
    Ar Cm Ic Li Va Vt Fa Em Sy No Ad An Dv Er Ev Pa Tn Lb Cd Ms Sx Ft Fd Lk Mt Me St Xr Fn Fo In Nm Nd Fl Ns Pf D1 Dl Ap
    %A %B %C %D %I %J %N %O %P %Q %R %T %U %V En Ex Rv Ta Xo Xc Eo Ec
""".split()
)
_CALLABLE = _PLAIN | _AROUND.keys() | _OPENING.keys() | _CLOSING.keys() | _NAMES.keys()
_CLOSING_MARKS = frozenset((".", ",", ":", ";", "?", "!", ")", "]"))
_OPENING_MARKS = frozenset(("(", "["))


class Mdoc:
    """Converts macros to text and stores the page's name, which `Nm` prints."""

    def __init__(self) -> None:
        self.name = ""

    def knows(self, macro: str) -> bool:
        return macro in _CALLABLE

    def line(self, words: list[str]) -> str:
        """Returns the text of a line of macros and arguments."""
        out = _Words()
        ends: list[str] = []
        macro = ""
        index = 0
        while index < len(words):
            word = words[index]
            index += 1
            if word in _CALLABLE:
                macro = word
                if word in _AROUND:
                    out.open(_AROUND[word][0])
                    ends.append(_AROUND[word][1])
                elif word in _OPENING:
                    out.open(_OPENING[word])
                elif word in _CLOSING:
                    out.close(_CLOSING[word])
                elif word in _NAMES:
                    out.add(_NAMES[word])
                elif word in ("Ns", "Ap"):
                    out.tight = True
                    if word == "Ap":
                        out.close("'")
                elif word == "Nm":
                    index = self._nm(words, index, out)
                elif word == "Nd":
                    out.add("–")
                elif word == "Fl" and (index == len(words) or words[index] in _CALLABLE):
                    out.add("-")
                elif word == "Ar" and (
                    index == len(words) or words[index] in _CALLABLE or words[index] in _CLOSING_MARKS
                ):
                    out.add("file ...")
                elif word in ("Fn", "Xr", "In", "Fo"):
                    index = _call(word, words, index, out)
            elif word in _CLOSING_MARKS:
                out.close(word)
            elif word in _OPENING_MARKS:
                out.open(word)
            elif word in ("-std", "-split", "-nosplit") and macro in ("Ex", "Rv", "An"):
                pass
            elif macro == "Fl":
                out.add(f"-{word}")
            elif macro == "Pf":
                out.open(word)
                macro = ""
            else:
                out.add(word)
        for end in reversed(ends):
            out.close(end)
        return out.text()

    def _nm(self, words: list[str], index: int, out: "_Words") -> int:
        if index < len(words) and words[index] not in _CALLABLE and words[index] not in _CLOSING_MARKS:
            self.name = self.name or words[index]
            return index
        if self.name:
            out.add(self.name)
        return index


def _call(macro: str, words: list[str], index: int, out: "_Words") -> int:
    """Adds a function with its arguments, a man page with its section, or a header file. Returns the index of the next
    word."""
    given = []
    while index < len(words) and words[index] not in _CALLABLE and words[index] not in _CLOSING_MARKS:
        given.append(words[index])
        index += 1
    if given and macro == "In":
        out.add(f"#include <{given[0]}>")
    elif given and macro == "Xr":
        out.add(f"{given[0]}({given[1]})" if len(given) > 1 else given[0])
    elif given and macro == "Fo":
        out.add(f"{given[0]}(")
        out.tight = True
    elif given:
        out.add(f"{given[0]}({', '.join(given[1:])})")
    return index


class _Words:
    """Joins words with spaces, except next to punctuation and macros that suppress the space."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.tight = True

    def add(self, word: str) -> None:
        self._parts.append(word if self.tight else f" {word}")
        self.tight = False

    def open(self, mark: str) -> None:
        self.add(mark.strip())
        self.tight = True

    def close(self, mark: str) -> None:
        self._parts.append(mark.strip())
        self.tight = False

    def text(self) -> str:
        return "".join(self._parts)
