"""Recognises technical text (manuals, documentation of code) and text that addresses its reader. Such text has fewer and less
specific names, so the rules extract only its direct statements."""

import re

_TECHNICAL = re.compile(
    r"\w\(\)|\w\(\d\w?\)|\w_\w|(?<!\w)--?[a-z]|::|<(?![^<>\s]*@)(?!https?:)|[{}\\=]|(?<!\w)[~.]?/\w+/|>>>|\b0x[0-9a-f]|\w\.\w+\(|[a-z_-]\.[a-z]{1,4}\b(?=[\s,;)])|"
    r"¶|\b[A-Z]+_[A-Z]|[\w]\.[a-z_]+\.[a-z]"
)
_SPEAKS = re.compile(
    r"\b(?:[Yy]ou(?:rs?)?|[Ww]e|[Oo]ur|us|[Pp]lease|[Tt]his (?:document|page|section|guide|file|list|release|package|article))"
    r"(?=['’]|,?\s+[a-z])|\byou\b"
)
_LIST = re.compile(r"^(?:[ \t]+|[-*+•–] |\d{1,3}[.)] )\S", re.MULTILINE)
"""A line of a list, or an indented line."""
_QUOTED = re.compile(r'["“][^"“”\n]{1,400}["”]')
_SHARE = 25
"""A passage is technical if at least one in 25 words has a mark of code."""
_MANUAL_TITLE = re.compile(
    r"(?:^|› )(?:Static )?(?:Class|Interface|Event|Method|Function|Module|Property): |"
    r"\S\([1-9][a-z]{0,4}\)|(?:^|› )[A-Z\d]+(?:\.\d+)+\.? |"
    r"\b(?:documentation|reference|manual|handbook|howto|how-to|faq|tutorial|cookbook|user guide)\b",
    re.IGNORECASE,
)


def is_technical(title: str, text: str) -> bool:
    """Whether the title names a manual, or at least one in `_SHARE` words has a mark of code. Takes linear time in the length
    of the text."""
    if _MANUAL_TITLE.search(title):
        return True
    return len(_TECHNICAL.findall(text)) * _SHARE > text.count(" ") + text.count("\n") + 1


def is_documentation(text: str) -> bool:
    """Whether a text addresses its reader ("you", "we", "this page"), or contains a list or a mark of code; articles do not."""
    return any(sign.search(text) for sign in (_TECHNICAL, _LIST)) or _SPEAKS.search(_QUOTED.sub("", text)) is not None
