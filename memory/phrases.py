"""One spelling for every subject, predicate and object, so that equal things meet in one node.

HippoRAG keeps ASCII letters and digits only, which empties a phrase in any other script; here letters, digits and
marks of every script stay. For plain ASCII the two rules differ in nothing but runs of spaces.
"""

import re
import unicodedata
from typing import Any

from store.types import Triple

_NOT_ASCII_WORD = re.compile(r"[^a-z0-9]+")
_KEPT = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc", "Me"})


def normalise_phrase(text: str) -> str:
    """`text` as compatibility-composed, case-folded words joined by single spaces; "" when nothing is left of it.

    Idempotent. Letters, digits and combining marks stay, invisible format characters vanish, the rest parts words.
    """
    if text.isascii():
        return _NOT_ASCII_WORD.sub(" ", text.lower()).strip()
    # Dropping a character can let its neighbours compose, so one pass may not be the last; a second nearly always is.
    for _ in range(4):
        once = _words(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))
        if once == text:
            break
        text = once
    return text


def _words(text: str) -> str:
    kept: list[str] = []
    bare = True
    for char in text:
        category = unicodedata.category(char)
        if category in _KEPT and not (bare and category[0] == "M"):
            kept.append(char)
            bare = False
        elif category != "Cf":
            # A mark needs a letter before it; one left alone after a gap would dangle from the space.
            kept.append(" ")
            bare = True
    return " ".join("".join(kept).split())


def normalise_triple(raw: Any) -> Triple | None:
    """The triple with its parts normalised; `None` unless `raw` is three strings of which something is left."""
    if not isinstance(raw, (list, tuple)) or len(raw) != 3 or not all(isinstance(part, str) for part in raw):
        return None
    subject, predicate, object_ = (normalise_phrase(part) for part in raw)
    return (subject, predicate, object_) if subject and predicate and object_ else None


def is_linkable(phrase: str) -> bool:
    """Whether a phrase may have synonym edges: more than two letters or digits (marks and spaces do not count)."""
    return sum(char.isalnum() for char in phrase) > 2
