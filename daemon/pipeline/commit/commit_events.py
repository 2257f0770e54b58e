"""Reports a commit: events, metrics and log lines for its documents and for the commit as a whole."""

from collections.abc import Callable

import structlog

from consumers.failure_codes import FailureCode
from daemon.contract.status import EventName
from daemon.observe.metrics import DOCUMENTS, FAILURES
from store.store import CommitResult
from store.types import Batch, State

log = structlog.get_logger()

Publish = Callable[..., None]
"""The type of `daemon.api.event_hub.EventHub.publish`."""


def report_documents(batch: Batch, committed: CommitResult, publish: Publish) -> None:
    commit, replaced = committed.seq, committed.replaced
    for document in batch.documents:
        DOCUMENTS.labels(document.state.value).inc()
        if document.state is not State.INDEXED:
            reason = document.code or FailureCode.OTHER
            FAILURES.labels(document.state.value, reason).inc()
            if document.state is State.FAILED:
                log.warning("document_failed", uri=document.uri, commit=commit, reason=reason)
            else:
                log.info("document_skipped", uri=document.uri, commit=commit, reason=reason)
        before = replaced.get(document.uri)
        left_out = [omission.text for omission in document.left_out]
        publish(
            document.state.value,
            document.uri,
            before=before,
            after=document,
            commit=commit,
            error=document.error,
            left_out=left_out,
        )
    for uri in batch.removed:
        DOCUMENTS.labels(State.REMOVED.value).inc()
        publish(State.REMOVED.value, uri, before=replaced.get(uri), commit=commit)


def report_commit(batch: Batch, committed: CommitResult, took_ms: float, publish: Publish) -> None:
    publish(EventName.COMMIT, None, commit=committed.seq, documents=len(batch.documents), removed=len(batch.removed))
    log.info(
        "committed",
        commit=committed.seq,
        documents=len(batch.documents),
        removed=len(batch.removed),
        passages=committed.born,
        forgotten=committed.died,
        took_ms=round(took_ms, 1),
    )
