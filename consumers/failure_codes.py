"""Reasons for failed documents as fixed codes: the labels of `hippod_failures_total` and a document's `code`.

A code is set where the failure arises, together with the error message for users.
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
    NEEDS_OCR = "needs Tesseract"
    NEEDS_CONVERTER = "needs LibreOffice"
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
"""Codes of failures that recur at every retry until the content or the configuration changes."""
