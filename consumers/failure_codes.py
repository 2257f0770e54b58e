"""Why documents fail, as a few fixed words: what `hippod_failures_total` counts by and what a document's `code` is.

A code is given where the failure arises, beside the sentence that people read.
"""

from enum import StrEnum


class FailureCode(StrEnum):
    MEMORY = "memory"
    TIME = "time"
    CRASH = "crash"
    PERMISSION = "permission"
    LINK = "link"
    NOT_A_FILE = "not a file"
    GONE = "gone"
    PROTECTED = "protected"
    NO_TEXT = "no text"
    ARCHIVE = "archive"
    TOO_LARGE = "too large"
    ENCODING = "encoding"
    DAMAGED = "damaged"
    JSON = "json"
    NOT_A_DOCUMENT = "not a document"
    INTERNAL = "internal"
    MODEL = "model"
    OWNERSHIP = "ownership"
    UNREADABLE = "unreadable"
    OTHER = "other"


FAILS_AGAIN = frozenset(
    {
        FailureCode.PROTECTED,
        FailureCode.NO_TEXT,
        FailureCode.ARCHIVE,
        FailureCode.TOO_LARGE,
        FailureCode.ENCODING,
        FailureCode.DAMAGED,
        FailureCode.JSON,
        FailureCode.NOT_A_DOCUMENT,
        FailureCode.OWNERSHIP,
    }
)
"""Another try fails in the same way until the content or the configuration is another."""
