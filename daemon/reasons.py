"""Short fixed words for why documents fail, so that failures can be counted by reason.

The sentences that people read are written in many places and hold names and numbers; the words here are what
`hippod_failures_total` is labelled with. What no word fits is "other".
"""

WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("memory", ("of memory; split", "want of memory", "more text than fits")),
    ("time", ("took longer than", "processor time")),
    ("crash", ("the parser crashed", "could not begin")),
    ("permission", ("no permission", "forbids reading")),
    ("link", ("symbolic link", "hard link", "does not lie in the folder")),
    ("not a file", ("not a regular file", "something special")),
    ("gone", ("not there any more", "not followed any more")),
    ("protected", ("password", "rights management")),
    ("no text", ("no text", "empty", "blank", "there is no document in it")),
    ("archive", ("archive", "unpack it into the folder")),
    ("too large", ("larger than max_bytes", "more than", "longer than")),
    ("encoding", ("not utf-8",)),
    ("damaged", ("damaged", "cut short", "not html that", "not an e-mail that", "not a table that")),
    ("json", ("json", "is required", "must be", "base64", "twice", "no object")),
    ("not a document", ("not a document", "exclude it")),
    ("internal", ("internal error",)),
    ("model", ("by the model",)),
    ("unreadable", ("could not be read", "check the disk")),
)
"""The first word with a phrase that the sentence holds, in lower case."""

OTHER = "other"


def word_for(reason: str | None) -> str:
    """The word for a document's `error`."""
    sentence = (reason or "").lower()
    return next((word for word, phrases in WORDS if any(phrase in sentence for phrase in phrases)), OTHER)
