"""Normalises phrases: subjects, predicates and objects with equal words get one spelling, so that they become one node.

HippoRAG keeps only ASCII letters and digits, so phrases in other scripts become empty. hippod keeps letters, digits and marks
of every script. For ASCII text, the two rules differ only in runs of spaces.
"""

import re
import unicodedata

from store.types import MENTION, Triple

_NOT_ASCII_WORD = re.compile(r"[^a-z0-9]+")
_KEPT_CATEGORIES = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc", "Me"})


def normalise_phrase(text: str) -> str:
    """Returns the words of `text`, in NFKC and case-folded, joined by single spaces; "" if there are none.

    Idempotent. Letters, digits and combining marks are kept; format characters are dropped; all other characters separate
    words. "œ" becomes "oe".
    """
    if text.isascii():
        return _NOT_ASCII_WORD.sub(" ", text.lower()).strip()
    # After a character is dropped, its neighbours may compose, which requires another pass. Two passes nearly always suffice.
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
        if category in _KEPT_CATEGORIES and not (bare and category[0] == "M"):
            kept.append(char)
            bare = False
        elif category != "Cf":
            # A combining mark needs a letter before it; after a space, it is dropped.
            kept.append(" ")
            bare = True
    return " ".join("".join(kept).replace("œ", "oe").split())


def normalise_triple(raw: object, *, mentions: bool = False) -> Triple | None:
    """Returns the triple with normalised parts; None unless `raw` contains three strings, with subject and object not empty
    after normalisation.

    With `mentions`, a triple with an empty predicate in `raw` is a mention edge (`store.types.MENTION`).
    """
    if not isinstance(raw, (list, tuple)) or len(raw) != 3 or not all(isinstance(part, str) for part in raw):
        return None
    subject, predicate, object_ = (normalise_phrase(part) for part in raw)
    if not subject or not object_:
        return None
    is_mention = mentions and raw[1] == MENTION
    return (subject, predicate, object_) if predicate or is_mention else None
