"""Recognises technical text (manuals, documentation of code) and text that speaks to its reader. They have fewer and less
specific names, so the rules take only direct statements from them."""

import re

_TECHNICAL = re.compile(
    r"\w\(\)|\w\(\d\w?\)|\w_\w|(?<!\w)--?[a-z]|::|<(?![^<>\s]*@)(?!https?:)|[{}\\=]|(?<!\w)[~.]?/\w+/|>>>|\b0x[0-9a-f]|\w\.\w+\(|[a-z_-]\.[a-z]{1,4}\b(?=[\s,;)])|"
    r"¶|\b[A-Z]+_[A-Z]|[\w]\.[a-z_]+\.[a-z]"
)
_READER = re.compile(r"\byou(?:r|rs)?\b")
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


def addresses_reader(text: str) -> bool:
    """Returns whether a text speaks to its reader ("you"), as instructions do and encyclopaedias do not."""
    return _READER.search(text) is not None
