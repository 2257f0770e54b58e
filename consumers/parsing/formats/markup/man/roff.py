"""Parts of roff that all man pages use: lines, comments, strings, conditions and escapes."""

import re
from collections.abc import Iterator

from consumers.omissions import OmissionKind, Omissions

_COMMENT = re.compile(r'(?<!\\)\\["#](.*)')
_WORD = re.compile(r"[^\W\d_]{3,}")
_CONTROL = re.compile(r"[.'][ \t]*(\S*)[ \t]*(.*)", re.DOTALL)
_ARGUMENT = re.compile(r'[ \t]*(?:"((?:[^"]|"")*)"?|((?:\\ |[^ \t])+))')
_CHARACTERS = {
    "aq": "'", "dq": '"', "cq": "’", "oq": "‘", "lq": "“", "rq": "”", "Bq": "„", "bq": "‚", "Fo": "«", "Fc": "»", "fo": "‹",
    "fc": "›", "em": "—", "en": "–", "hy": "‐", "mi": "−", "bu": "•", "sq": "□", "ci": "○", "co": "©", "rg": "®", "tm": "™",
    "de": "°", "dg": "†", "dd": "‡", "sc": "§", "ps": "¶", "ha": "^", "ti": "~", "ga": "`", "aa": "´", "rs": "\\", "sl": "/",
    "ba": "|", "or": "|", "at": "@", "sh": "#", "Do": "$", "Eu": "€", "eu": "€", "Po": "£", "ct": "¢", "lB": "[", "rB": "]",
    "lC": "{", "rC": "}", "la": "⟨", "ra": "⟩", "<-": "←", "->": "→", "<>": "↔", "ua": "↑", "da": "↓", "lA": "⇐", "rA": "⇒",
    "<=": "≤", ">=": "≥", "!=": "≠", "==": "≡", "~=": "≅", "+-": "±", "mu": "×", "di": "÷", "pl": "+", "eq": "=", "**": "∗",
    "if": "∞", "sr": "√", "tmu": "×", "tdi": "÷", "no": "¬", "AN": "∧", "OR": "∨", "fa": "∀", "te": "∃", "mo": "∈",
    "nm": "∉", "es": "∅", "ca": "∩", "cu": "∪", "sb": "⊂", "sp": "⊃", "ib": "⊆", "ip": "⊇", "pd": "∂", "gr": "∇", "is": "∫",
    "sum": "∑", "product": "∏", "pt": "∝", "~~": "≈", "ap": "∼", "fm": "′", "sd": "″", "mc": "µ", "hA": "⇔", "ts": "ς",
    "ss": "ß", "AE": "Æ", "ae": "æ", "OE": "Œ", "oe": "œ", "o/": "ø", "O/": "Ø", "oa": "å", "oA": "Å", "14": "¼", "12": "½",
    "34": "¾", "S1": "¹", "S2": "²", "S3": "³", "Of": "ª", "Om": "º", "r!": "¡", "r?": "¿", "OK": "✓", "lh": "☜", "rh": "☞",
    "br": "│", "ul": "_", "rn": "‾", "bv": "|", "nb": " ",
}  # fmt: skip
_CHARACTERS |= {
    f"*{name}": letter for name, letter in zip("abgdezyhiklmncoprstufxqw", "αβγδεζηθικλμνξοπρστυφχψω", strict=True)
}
_CHARACTERS |= {
    name.upper(): letter.upper() for name, letter in _CHARACTERS.items() if name.startswith("*") and name != "**"
}
"""Special characters by name (groff_char(7)). A Greek letter's name is "*" and a Latin letter."""
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", ":": "\u0308", ",": "\u0327"}
_ESCAPE = re.compile(
    r"""\\(?:
      (?P<special>\((?P<two>..)|\[(?P<long>[^\]\n]*)\])
    | f(?:\(..|\[[^\]\n]*\]|.)
    | \*(?:\((?P<string2>..)|\[(?P<string>[^\]\n]*)\]|(?P<string1>.))
    | (?:n|g|k|V|Y|F|m|M)[+-]?(?:\(..|\[[^\]\n]*\]|.)
    | s(?:[+-]?\(\d\d|[+-]?\[[^\]\n]*\]|[+-]?'[^'\n]*'|[+-]?\d)
    | C'(?P<quoted>[^'\n]*)'
    | [hvwlLDNSHRAbBoxXZ](?:'[^'\n]*'|"[^"\n]*")
    | (?P<one>.)
    | $)""",
    re.VERBOSE | re.MULTILINE,
)
_SINGLE = {
    " ": " ", "~": " ", "0": " ", "t": "\t", "e": "\\", "\\": "\\", "E": "\\", "'": "´", "`": "`", "-": "-", "_": "_", ".": ".",
}  # fmt: skip
_UNICODE = re.compile(r"u([0-9A-F]{4,6})(?:_([0-9A-F]{4,6}))?\Z")


def lines(text: str, omissions: Omissions) -> list[str]:
    """Returns the lines without comments. A line that ends in a backslash is joined with the next line."""

    def comment(match: re.Match[str]) -> str:
        report(OmissionKind.COMMENT, match[1], omissions)
        return ""

    found: list[str] = []
    continued = ""
    for line in text.split("\n"):
        line = continued + _COMMENT.sub(comment, line)
        continued = ""
        if line.endswith("\\") and not line.endswith("\\\\"):
            continued = line[:-1]
        else:
            found.append(line)
    if continued:
        found.append(continued)
    return found


def report(kind: OmissionKind, line: str, omissions: Omissions) -> None:
    """Reports a line that is not printed if it contains a word besides the name of the request."""
    found = control(line)
    if found is not None:
        line = "" if found[0].islower() and found[0] != "tl" else found[1]
    if _WORD.search(line):
        omissions.add(kind, line)


def control(line: str) -> tuple[str, str] | None:
    """Returns the name of a request or macro and the rest of the line, or None for a line of text."""
    if line[:1] not in (".", "'") or not (match := _CONTROL.match(line)):
        return None
    return match[1], match[2]


def arguments(text: str) -> list[str]:
    """Returns the arguments of a macro: words or quoted strings."""
    return [
        quoted.replace('""', '"') if quoted is not None else word
        for quoted, word in ((match[1], match[2]) for match in _ARGUMENT.finditer(text))
        if quoted is not None or word
    ]


class Escapes:
    """Converts roff's escapes to text; keeps the strings that the page has defined."""

    def __init__(self) -> None:
        self.strings = {"R": "®", "Tm": "™", "lq": "“", "rq": "”", "S": "", "Aq": "'"}
        self.unused: set[str] = set()

    def define(self, text: str) -> None:
        name, _, value = text.partition(" ")
        if name and len(self.strings) < 1000:
            self.strings[name] = self.plain(value.strip().removeprefix('"'))[:1000]
            self.unused.add(name)

    def plain(self, text: str) -> str:
        return _ESCAPE.sub(self._printed, text) if "\\" in text else text

    def _printed(self, match: re.Match[str]) -> str:
        if match["special"]:
            return _character(match["two"] or match["long"] or "")
        if match["quoted"]:
            return _character(match["quoted"])
        name = match["string2"] or match["string"] or match["string1"]
        if name is not None:
            self.unused.discard(name)
            return self.strings.get(name) or _CHARACTERS.get(name, "")
        return _SINGLE.get(match["one"] or "", "")


def _character(name: str) -> str:
    if name in _CHARACTERS:
        return _CHARACTERS[name]
    if code := _UNICODE.match(name):
        return "".join(chr(point) for each in code.groups() if each and _is_character(point := int(each, 16)))
    if len(name) == 2 and name[0] in _ACCENTS:
        return name[1] + _ACCENTS[name[0]]
    return name if len(name) == 1 else "\ufffd"


def _is_character(point: int) -> bool:
    return point < 0x110000 and not 0xD800 <= point < 0xE000


def without_programs(all_lines: list[str], omissions: Omissions) -> Iterator[tuple[int, str]]:
    """Yields (number, line), without macro definitions and the branches of false conditions.

    Conditions are evaluated for a terminal (`n`). Numbers start at 1.
    """
    index = 0
    was_true = False
    while index < len(all_lines):
        line = all_lines[index]
        index += 1
        found = control(line)
        if found is None:
            yield index, line
            continue
        name, rest = found
        first = index
        if name in ("de", "de1", "am", "ig", "dei"):
            end = "." + ((arguments(rest)[1:] or ["."])[0] if name != "ig" else (arguments(rest) or ["."])[0])
            while index < len(all_lines) and not all_lines[index].startswith(end):
                index += 1
            for left_out in all_lines[first:index]:
                report(OmissionKind.COMMENT if name == "ig" else OmissionKind.OTHER, left_out, omissions)
            index += 1
        elif name in ("if", "ie", "el", "while"):
            if name == "el":
                is_true, body = not was_true, rest
            else:
                test, _, body = rest.partition(" ")
                is_true = name != "while" and test in ("n", "!t", "1")
                was_true = is_true
            index = _past_condition(all_lines, index, body, is_true)
            kept = body.strip().removeprefix("\\{").strip()
            if is_true and kept:
                yield index, kept
            for left_out in () if is_true else (kept, *all_lines[first:index]):
                report(OmissionKind.HIDDEN, left_out, omissions)
        elif not name.startswith("\\}"):
            yield index, line


def _past_condition(all_lines: list[str], index: int, body: str, is_true: bool) -> int:
    """Returns the index of the next line to parse. If the condition is false, this is the line after the conditional block."""
    if is_true or "\\{" not in body:
        return index
    depth = body.count("\\{") - body.count("\\}")
    while depth > 0 and index < len(all_lines):
        depth += all_lines[index].count("\\{") - all_lines[index].count("\\}")
        index += 1
    return index
