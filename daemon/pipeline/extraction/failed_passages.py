"""The passages that the extractor could not read: how often that was tried, why, and when it is tried again."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from daemon.pipeline.document_mapping import RETRY_DELAYS_S
from store.store import Store
from store.types import Extraction, ExtractionOutcome, ExtractionState

SWEEP_FAILURES = 1024
"""Failures are searched for unneeded ones once there are this many, and then each time that their number has doubled."""


@dataclass(frozen=True, slots=True)
class PassageFailure:
    """`next_try` is in Unix seconds, None where only `retry` tries again."""

    attempts: int
    reason: str
    next_try: float | None


def failed_now(attempts: int, reason: str) -> PassageFailure:
    """A failure after that many attempts, with the time of the next."""
    return PassageFailure(
        attempts, reason, time.time() + RETRY_DELAYS_S[attempts - 1] if attempts <= len(RETRY_DELAYS_S) else None
    )


def is_failed(state: ExtractionState | None) -> bool:
    return state is not None and state.status is ExtractionOutcome.FAILED


def awaits_extractor(state: ExtractionState | None) -> bool:
    """Whether the configured extractor is still to read the passage without being asked for it."""
    return state is None or state.status is ExtractionOutcome.STAND_IN


def failed_extraction(store: Store, passage: str, extractor: str, attempts: int, reason: str) -> Extraction | None:
    """The failure to commit for a passage; None where it has an older extraction of a model's, which is better than none.

    A stand-in's triples stay under the failure.
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
    """The failures of passages that documents need read, and for a while of others. On the event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failures: dict[str, PassageFailure] = {}
        self._sweep_at = SWEEP_FAILURES

    def __contains__(self, passage: str) -> bool:
        return passage in self._failures

    def load(self) -> None:
        """Lists the failures that are in the store."""
        for passage in self._store.passages_by_extraction(is_failed):
            self.take_from_store(passage)

    def take_from_store(self, passage: str) -> bool:
        """Lists the passage's failure if the store has one; returns whether it has."""
        state = self._store.extraction_state(passage)
        if state is None or not is_failed(state):
            return False
        self._failures[passage] = failed_now(max(state.attempts, 1), state.error or "")
        return True

    def add(self, passage: str, failure: PassageFailure) -> None:
        self._failures[passage] = failure

    def discard(self, passage: str) -> None:
        self._failures.pop(passage, None)

    def matching(self, wanted: Callable[[str, float | None], bool]) -> list[tuple[str, int]]:
        """Those that are `wanted`, by id and time of the next try, with how often they were tried."""
        return [(id, failure.attempts) for id, failure in self._failures.items() if wanted(id, failure.next_try)]

    def living(self) -> dict[str, PassageFailure]:
        """The failures of passages that the extractor is to read for a document: no other failure is of interest."""
        return {id: failure for id, failure in self._failures.items() if self._store.documents_to_extract(id)}

    def sweep(self) -> list[str]:
        """Forgets the failures of passages that no document needs read any more and returns these; most calls do nothing.

        So the cost of one commit does not grow with the failures. They are listed again when the passage comes back.
        """
        if len(self._failures) < self._sweep_at:
            return []
        unneeded = [id for id in self._failures if not self._store.documents_to_extract(id)]
        for id in unneeded:
            del self._failures[id]
        self._sweep_at = max(2 * len(self._failures), SWEEP_FAILURES)
        return unneeded
