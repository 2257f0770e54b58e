"""What an answer does not know yet: documents that are being read, and sources that have not been looked through."""

from collections.abc import Sequence

from daemon.pipeline.extraction.queue import ExtractionQueue
from daemon.pipeline.pipeline import Pipeline
from daemon.sources.base import Source


class UnreadDocuments:
    """On the event loop. From counters: it is asked at every query."""

    def __init__(self, pipeline: Pipeline, extraction_queue: ExtractionQueue, sources: Sequence[Source]) -> None:
        self._pipeline = pipeline
        self._extraction_queue = extraction_queue
        self._sources = sources

    def note(self) -> str | None:
        """What an answer of this moment leaves out, for its `note`; None where all is read."""
        parts = []
        if pending := self._pipeline.intake.documents():
            parts.append(f"{pending:,} {'document is' if pending == 1 else 'documents are'} still being read")
        if waiting := len(self._extraction_queue):
            parts.append(f"{waiting:,} {'passage waits' if waiting == 1 else 'passages wait'} for the model")
        parts += [unread for source in self._sources if (unread := source.unread()) is not None]
        return "; ".join(parts) or None


def joined(*notes: str | None) -> str | None:
    """Several notes as one."""
    return "; ".join(note for note in notes if note) or None
