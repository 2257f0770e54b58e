"""What an extraction's `extractor` says beside its name: that it stands in for a model's, or that the model failed.

Both are kept where the extraction is, in the store, so that a restart knows them without another table.
"""

from dataclasses import dataclass

STAND_IN = "fallback:"
_FAILED = "failed:"


@dataclass(frozen=True, slots=True)
class Failure:
    """A passage that the extractor could not read: how often that was tried, and why."""

    attempts: int
    reason: str


def failure_mark(failure: Failure) -> str:
    return f"{_FAILED}{failure.attempts}:{failure.reason}"


def failure_of(extractor: str | None) -> Failure | None:
    """The failure that an extraction's `extractor` tells of, None for an extraction that succeeded."""
    if extractor is None or not extractor.startswith(_FAILED):
        return None
    attempts, _, reason = extractor.removeprefix(_FAILED).partition(":")
    return Failure(int(attempts) if attempts.isdigit() else 1, reason)


def is_unread(extractor: str | None) -> bool:
    """Whether the configured extractor is still to read the passage without being asked for."""
    return extractor is None or extractor.startswith(STAND_IN)
