"""Recognises technical text (manuals, documentation of code). It has fewer and less specific names, so the rules take only
direct statements from it."""

import re

_TECHNICAL = re.compile(
    r"\w\(\)|\w\(\d\w?\)|\w_\w|(?<!\w)--?[a-z]|::|<(?![^<>\s]*@)(?!https?:)|[{}\\=]|(?<!\w)[~.]?/\w+/|>>>|\b0x[0-9a-f]|\w\.\w+\(|[a-z_-]\.[a-z]{1,4}\b(?=[\s,;)])|"
    r"¶|\b[A-Z]+_[A-Z]|[\w]\.[a-z_]+\.[a-z]"
)
_SHARE = 25
"""A passage is technical if at least one in this many words has a mark of code."""
_MANUAL_TITLE = re.compile(
    r"\S\([1-9][a-z]{0,4}\)|(?:^|› )[A-Z\d]+(?:\.\d+)+\.? |"
    r"\b(?:documentation|reference|manual|handbook|howto|how-to|faq|tutorial|cookbook|user guide)\b",
    re.IGNORECASE,
)


def is_technical(title: str, text: str) -> bool:
    """Returns whether the title is a manual's, or one in `_SHARE` words has a mark of code. Linear in the text."""
    if _MANUAL_TITLE.search(title):
        return True
    return len(_TECHNICAL.findall(text)) * _SHARE > text.count(" ") + text.count("\n") + 1
