"""Source code by Pygments: its comments and docstrings.

Licences, short comments, commented-out code and the number of lines of code are reported as omissions.
"""

import re
from typing import Any

from pygments.lexers import get_lexer_for_filename
from pygments.token import Token
from pygments.util import ClassNotFound

from consumers.failure_codes import FailureCode
from consumers.omissions import OmissionKind, Omissions
from consumers.parsing.decoding import decode
from consumers.parsing.formats.text import within_limits
from consumers.parsing.limits import Limits, NotADocument, TooLarge, WrongKind
from consumers.parsing.outline import Outline
from consumers.splitting import ParsedText

_MAX_BYTES = 1 << 21
_GENERATED = re.compile(
    r"\b(?:auto(?:matically)?[- ]?generated|code generated|do not (?:edit|modify))\b", re.IGNORECASE
)
_GENERATED_WITHIN = 2000
_LICENSE = re.compile(r"\b(?:copyright|licen[sc]ed?|spdx-license-identifier|all rights reserved)\b|©", re.IGNORECASE)
_MARKS = re.compile(
    r"\A[ \t]*(?:/\*+!?|\*+/|\*+(?!\w)|//+[!/]?|#+!?|--+\[*|;+|%+|<!--|\"\"\"|'''|\{-|rem\b)?[ \t]?", re.IGNORECASE
)
_CLOSING = re.compile(r"[ \t]*(?:\*+/|-->|\"\"\"|'''|-\}|\]\]|#+)[ \t]*\Z")
_QUOTES = re.compile(r"\A[rRbBuUfF]{0,2}(\"\"\"|'''|\"|')(.*)\1\Z", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2,}")
_MIN_WORDS = 4
_CODE_SIGNS = re.compile(r"[(){}\[\];=<>|&$@\\]")
_MAX_CODE_SHARE = 0.1
"""Maximum share of code characters in a line of a comment. A line with a larger share is commented-out code."""


def parse_source(data: bytes, limits: Limits, omissions: Omissions, ending: str) -> ParsedText:
    if len(data) > _MAX_BYTES:
        raise TooLarge(
            f"{len(data):,} bytes of source code, more than the {_MAX_BYTES:,} that people write; exclude it"
        )
    text = within_limits(decode(data), limits, omissions)
    if _GENERATED.search(text[:_GENERATED_WITHIN]):
        raise WrongKind("source code that a program wrote; exclude it")
    try:
        lexer = get_lexer_for_filename(f"a.{ending}", stripnl=False, ensurenl=False)
    except ClassNotFound:
        raise WrongKind("source code of a language that is not known; exclude it") from None
    outline = Outline(limits.text_chars, omissions)
    _Comments(outline).read(lexer, text)
    blocks = outline.done()
    if not blocks:
        raise NotADocument("source code without comments of four words or more; exclude it", FailureCode.NO_TEXT)
    return ParsedText(blocks, "", {"language": lexer.name})


class _Comments:
    """Collects comments. Comments on consecutive lines are joined; a docstring follows the name that it documents."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.name = ""
        self._lines: list[str] = []
        self._first = 0
        self._last = 0
        self._code: set[int] = set()

    def read(self, lexer: Any, text: str) -> None:
        line = 1
        for kind, value in lexer.get_tokens(text):
            if kind in Token.Comment and kind not in Token.Comment.Preproc and kind not in Token.Comment.PreprocFile:
                if kind not in Token.Comment.Hashbang:
                    self._comment(value, line)
            elif kind in Token.Literal.String.Doc:
                self.end()
                self._docstring(value, line)
            elif kind in Token.Name.Function or kind in Token.Name.Class:
                self.name = value
                self._code.add(line)
                self.end()
            elif value.strip():
                self._code.add(line)
                self.end()
            line += value.count("\n")
        self.end()
        self.outline.omissions.add(OmissionKind.CODE, count=len(self._code))

    def _comment(self, value: str, line: int) -> None:
        if self._lines and line > self._last + 1:
            self.end()
        if not self._lines:
            self._first = line
        found = [_CLOSING.sub("", _MARKS.sub("", each)).rstrip() for each in value.rstrip("\n").split("\n")]
        self._lines += found
        self._last = line + len(found) - 1

    def _docstring(self, value: str, line: int) -> None:
        match = _QUOTES.match(value.strip())
        body = "\n".join(each.strip() for each in (match[2] if match else value).strip().split("\n"))
        if body.strip():
            self.outline.text(f"{self.name}: {body}" if self.name else body, line=line)

    def end(self) -> None:
        lines, self._lines = self._lines, []
        code = [line for line in lines if _is_code(line)]
        text = "\n".join(line for line in lines if not _is_code(line)).strip()
        if len(_WORD.findall(text)) >= _MIN_WORDS and not _LICENSE.search(text):
            self.outline.text(text, line=self._first)
        else:
            code.insert(0, text)
        if _WORD.search(left_out := "\n".join(code)):
            self.outline.omissions.add(OmissionKind.COMMENT, left_out)


def _is_code(line: str) -> bool:
    return len(_CODE_SIGNS.findall(line)) > _MAX_CODE_SHARE * len(line)
