"""The types of problems, for programs. Does not import pydantic, because hippoctl needs it before it parses a response."""

from enum import StrEnum


class ProblemType(StrEnum):
    """What went wrong, for a program to decide on. `hippoctl` exits with 4 on NOT_CONFIGURED and 5 on TIMED_OUT."""

    BAD_REQUEST = "urn:hippod:problem:bad-request"
    INVALID = "urn:hippod:problem:invalid"
    UNAUTHORISED = "urn:hippod:problem:unauthorised"
    FORBIDDEN = "urn:hippod:problem:forbidden"
    WRONG_HOST = "urn:hippod:problem:wrong-host"
    NOT_FOUND = "urn:hippod:problem:not-found"
    METHOD_NOT_ALLOWED = "urn:hippod:problem:method-not-allowed"
    CONFLICT = "urn:hippod:problem:conflict"
    TOO_SLOW = "urn:hippod:problem:too-slow"
    TOO_LARGE = "urn:hippod:problem:too-large"
    UNSUPPORTED_MEDIA_TYPE = "urn:hippod:problem:unsupported-media-type"
    TOO_MANY_REQUESTS = "urn:hippod:problem:too-many-requests"
    NOT_CONFIGURED = "urn:hippod:problem:not-configured"
    UPSTREAM = "urn:hippod:problem:upstream"
    BUSY = "urn:hippod:problem:busy"
    NOT_READY = "urn:hippod:problem:not-ready"
    TIMED_OUT = "urn:hippod:problem:timed-out"
    CANNOT_START = "urn:hippod:problem:cannot-start"
    INTERNAL = "urn:hippod:problem:internal"
