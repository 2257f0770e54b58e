"""Recognises lines of a passage that are not prose: code, terminal sessions, signatures, synopses, tables of contents,
navigation."""

import re

from memory.openie.rules.grammar.tokenizer import word_set

_PROMPT = re.compile(r">>> |>>>$|\.\.\. |\.\.\.$|[$%#] \S|\(gdb\) |C:\\|[\w.-]+@[\w.-]+[:~ ].*[$#] ")
_START = re.compile(
    r"(?:def|class|import|from \S+ import|return|elif|except|raise|assert|yield|lambda|async|await|print|sudo|apt|apt-get|dpkg|"
    r"cmake|git|typedef|struct|static|const|void|int|char|unsigned|#include|#define|#!|//|/\*|\*/|if \(|for \(|while \(|"
    r"else:|try:|with open)(?=[\s(:;]|$)"
)
_SIGNATURE = re.compile(r"[\w.:~*&-]+ ?\([^()]*\)?[^a-z]{0,3}(?:¶|;|:|->.*|→.*|\{)?$")
_OPTION = re.compile(r"-{1,2}[A-Za-z][\w-]*(?:[ =,|]|$)")
_CODE_MARKS = frozenset("{}[]<>=|\\$`~^@#*_+&%│─┌└┐┘┤├┼")
_ASSIGNED = re.compile(r"[\w.\[\]\"'<>-]+\s*(?:=|\+=|:=|==|->|=>|::)\s*\S")
_NODE = re.compile(r"\w{1,20}[\[({]{1,2}[^\])}]*[\])}]{1,2}")
"""A node in the source of a diagram: "A[Your phone]"."""
_LEADERS = re.compile(r"(?:\. ?){4,}|[.…·_-]{5,}\s*\d*$")
_FOOTER = re.compile(
    r"©|Copyright \W|Copyright \d|Last (?:updated|modified)|Created using|All rights reserved", re.IGNORECASE
)
_NUMBERED = re.compile(r"(?:[A-Z]|\d+)(?:\.\d+)+\.? +\S")
_NAVIGATION = word_set(
    "index modules next previous prev up home top back contents navigation search theme auto light dark menu toc « » | – -"
)


def is_code(line: str, continues: bool = False) -> bool:
    """Whether a stripped line is not prose. `continues`: the line may continue the sentence of the previous line.

    Takes linear time; only the first 400 characters are read.
    """
    line = line[:400]
    if _FOOTER.match(line) or _PROMPT.match(line) or _LEADERS.search(line):
        return True
    words = line.split()
    ends = line[-1:] in ".!?" and len(words) > 3 and line[-2:-1] not in "."
    if all(word.strip("|»«·").lower() in _NAVIGATION or not word.strip("|»«·-–") for word in words):
        return True
    if line.endswith(("»", "|", "\\", "{", "};", ");", "¶")) and len(words) < 12:
        return True
    if not ends and (_SIGNATURE.fullmatch(line) or _NUMBERED.match(line) or _NODE.fullmatch(line)):
        return True
    if continues and line[:1].islower():
        ends = True
    if not ends and (_OPTION.match(line) or _ASSIGNED.match(line) or (_START.match(line) and len(words) < 9)):
        return True
    marks = sum(char in _CODE_MARKS for char in line)
    plain = sum(word.strip(".,;:()").isalpha() for word in words)
    return marks > 2 and (marks * 9 > len(line) or plain * 2 < len(words))
