"""Passages on which the extractor failed, with the number of attempts, the reason, and the time of the next attempt."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from daemon.pipeline.document_changes import RETRY_DELAYS_S
from store.store import Store
from store.types import Extraction, ExtractionOutcome, ExtractionState

SWEEP_FAILURES = 1024
"""Number of failures at which unneeded failures are first dropped; later, twice the number that remained."""


@dataclass(frozen=True, slots=True)
class PassageFailure:
    """A failed extraction. `next_try` is in Unix seconds; None if only `retry` starts another attempt."""

    attempts: int
    reason: str
    next_try: float | None


def failed_now(attempts: int, reason: str) -> PassageFailure:
    """Returns a failure after `attempts` attempts, with the time of the next attempt."""
    return PassageFailure(
        attempts, reason, time.time() + RETRY_DELAYS_S[attempts - 1] if attempts <= len(RETRY_DELAYS_S) else None
    )


def is_failed(state: ExtractionState | None) -> bool:
    return state is not None and state.status is ExtractionOutcome.FAILED


def awaits_extractor(state: ExtractionState | None) -> bool:
    """Returns whether the configured extractor will process the passage automatically."""
    return state is None or state.status is ExtractionOutcome.STAND_IN


def failed_extraction(store: Store, passage: str, extractor: str, attempts: int, reason: str) -> Extraction | None:
    """Returns the failure to commit for a passage; None if the passage keeps an older extraction by a model.

    The failure keeps the triples of a stand-in's extraction.
    """
    state = store.extraction_state(passage)
    if not (awaits_extractor(state) or is_failed(state)):
        return None
    return Extraction(
        passage,
        extractor,
        triples=store.extracted_triples(passage),
        status=ExtractionOutcome.FAILED,
        attempts=attempts,
        error=reason,
    )


class FailedPassages:
    """The failures of passages whose extraction is needed by a document, and temporarily of other passages. Use on the event
    loop only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failures: dict[str, PassageFailure] = {}
        self._sweep_at = SWEEP_FAILURES

    def __contains__(self, passage: str) -> bool:
        return passage in self._failures

    def load(self) -> None:
        """Adds all failures that the store contains."""
        for passage in self._store.passages_by_extraction(is_failed):
            self.take_from_store(passage)

    def take_from_store(self, passage: str) -> bool:
        """Adds the passage's failure if the store contains one; returns whether it does."""
        state = self._store.extraction_state(passage)
        if state is None or not is_failed(state):
            return False
        self._failures[passage] = failed_now(max(state.attempts, 1), state.error or "")
        return True

    def add(self, passage: str, failure: PassageFailure) -> None:
        self._failures[passage] = failure

    def discard(self, passage: str) -> None:
        self._failures.pop(passage, None)

    def matching(self, is_due: Callable[[str, float | None], bool]) -> list[tuple[str, int]]:
        """Returns (id, attempts) of the failures for which `is_due(id, time of the next attempt)` is true."""
        return [(id, failure.attempts) for id, failure in self._failures.items() if is_due(id, failure.next_try)]

    def living(self) -> dict[str, PassageFailure]:
        """Returns the failures of passages whose extraction is needed by a document."""
        return {id: failure for id, failure in self._failures.items() if self._store.documents_to_extract(id)}

    def sweep(self) -> list[str]:
        """Drops the failures of passages that no document needs extracted, and returns their ids. Most calls do nothing, so
        that a commit's cost does not grow with the number of failures.

        A dropped failure is added again if its passage returns.
        """
        if len(self._failures) < self._sweep_at:
            return []
        unneeded = [id for id in self._failures if not self._store.documents_to_extract(id)]
        for id in unneeded:
            del self._failures[id]
        self._sweep_at = max(2 * len(self._failures), SWEEP_FAILURES)
        return unneeded
