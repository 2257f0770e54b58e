"""Converts Office formulas (OMML) to one line of text: "v^2", "(a+b)/2", "√(x)" (ECMA-376 part 1, 22.1)."""

from typing import Any

from consumers.parsing.decoding import clean_text

Element = Any
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_BEFORE = {"sup": "^", "sub": "_", "den": "/", "lim": "_"}
_GROUPED = frozenset(("sup", "sub", "num", "den", "deg", "lim"))


def formula_text(formula: Element) -> str:
    return clean_text(_text(formula)).strip()


def _text(node: Element) -> str:
    name = node.tag.removeprefix(_M) if isinstance(node.tag, str) else ""
    if name.endswith("Pr"):
        return _sign(node) if name in ("naryPr", "accPr", "groupChrPr") else ""
    if not len(node):
        return node.text or ""
    parts = [_text(child) for child in node]
    match name:
        case "d":
            return _delimited(node, parts)
        case "mr" | "eqArr":  # rows of a matrix, lines of an equation system
            text = ", ".join(filter(None, parts)) + "; "
        case "rad":
            degree = "".join(text for child, text in zip(node, parts, strict=True) if child.tag == f"{_M}deg")
            return f"{degree}√({''.join(parts).removeprefix(degree)})"
        case _:
            text = "".join(parts)
    if name in _GROUPED and len(text) > 1:
        text = f"({text})"
    return f"{_BEFORE[name]}{text}" if name in _BEFORE and text else text


def _sign(properties: Element) -> str:
    sign = properties.find(f"{_M}chr")
    default = "∫" if properties.tag == f"{_M}naryPr" else ""
    return default if sign is None else (sign.get(f"{_M}val") or "")


def _delimited(node: Element, parts: list[str]) -> str:
    """Returns the content in brackets, which are round unless the properties name other brackets."""
    found = {"begChr": "(", "endChr": ")", "sepChr": "|"}
    properties = node.find(f"{_M}dPr")
    for name in found:
        sign = None if properties is None else properties.find(f"{_M}{name}")
        if sign is not None:
            found[name] = sign.get(f"{_M}val") or ""
    return found["begChr"] + found["sepChr"].join(filter(None, parts)) + found["endChr"]
