"""`reextract` and `backfill`: what the extractor is asked to do beyond reading what is new."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import structlog

from daemon.api.errors import NotConfigured
from daemon.contract import ExtractionResponse, ExtractionStatus, Spent, moment
from daemon.metrics import TOKENS
from daemon.pipeline.backlog import Backlog
from store.store import Store
from store.types import Extraction, PassageText

BULK = 512
"""Passages a bulk extractor gets at a time: enough to fill a card, and committed before the next are read."""

log = structlog.get_logger()


class Bulk(Protocol):
    """An extractor that reads many passages at once and holds its thread; `unread` is told of each that it cannot read,
    and why."""

    def extract(
        self, passages: Sequence[PassageText], unread: Callable[[str, str], None] | None = None
    ) -> list[Extraction]: ...


class ExtractionService:
    """The `Extractions` port. `bulk` makes the extractor of `backfill` (it loads a model), None where there is none."""

    def __init__(self, store: Store, backlog: Backlog, bulk: Callable[[], Bulk] | None = None) -> None:
        self._store = store
        self._backlog = backlog
        self._bulk = bulk
        self._loaded: Bulk | None = None
        self._running: asyncio.Task[None] | None = None
        self._failed: str | None = None

    async def reextract(self) -> ExtractionResponse:
        return await self._answer(await self._backlog.reread())

    async def backfill(self) -> ExtractionResponse:
        if self._bulk is None:
            raise NotConfigured('backfill is for [openie] backend = "vllm"; with "llm" passages are read as they come')
        started = 0
        if self._running is None or self._running.done():
            self._failed = None
            started = len(self._backlog)
            self._running = asyncio.create_task(self._fill())
        return await self._answer(started)

    async def status(self) -> ExtractionResponse:
        return await self._answer(0)

    async def _answer(self, requeued: int) -> ExtractionResponse:
        # First: where nothing runs any more, the costs are those of all that was read.
        running = self._running is not None and not self._running.done()
        spent = await asyncio.to_thread(self._store.spent)
        costs = [
            Spent(extractor=name, passages=count, prompt_tokens=prompt, completion_tokens=completion)
            for name, (count, prompt, completion) in sorted(spent.items())
            if not name.startswith("failed:")
        ]
        return ExtractionResponse(
            extractor=self._backlog.name,
            requeued=requeued,
            waiting=len(self._backlog),
            failed=len(self._backlog.failures()),
            running=running,
            error=self._failed,
            waiting_for=self._backlog.outage.reason if self._backlog.outage else None,
            spent=costs,
        )

    async def _fill(self) -> None:
        """Over everything that waits, some hundred passages at a time: what is committed is not read again."""
        assert self._bulk is not None
        try:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(self._bulk)
            while passages := self._backlog.waiting(BULK):
                unread: dict[str, str] = {}
                extractions = await asyncio.to_thread(self._loaded.extract, passages, unread.__setitem__)
                count_tokens(extractions)
                for extraction in extractions:
                    self._backlog.give(extraction)
                for id, reason in unread.items():
                    self._backlog.fail(id, reason)
                await self._backlog.settled()
        except Exception as error:  # whatever the library or the card raised: passages go on waiting, and it is told
            log.error("backfill_failed", error=error, exc_info=True)
            self._failed = f"{type(error).__name__}: {str(error)[:300]}"

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()


def standing(store: Store, backlog: Backlog) -> "Standing":
    """On the event loop; `of` may be asked in a thread."""
    return Standing(store, backlog.open(), {id: f.reason for id, f in backlog.failures().items()})


class Standing:
    """Which documents wait for the extractor, and which hold a passage that it could not read."""

    def __init__(self, store: Store, open_: Iterable[str], failures: dict[str, str]) -> None:
        self._store = store
        self._open = list(open_)
        self._failures = failures

    def pending(self) -> set[str]:
        return {uri for id in self._open for uri in self._store.users(id)}

    def failed(self) -> dict[str, str]:
        """Why, by URI."""
        out: dict[str, list[str]] = {}
        for id, reason in self._failures.items():
            for uri in self._store.users(id):
                out.setdefault(uri, []).append(reason)
        return {
            uri: f"{len(reasons)} of its passages could not be read by the model and are found without triples: {reasons[0]}"
            for uri, reasons in out.items()
        }


def extraction_status(backlog: Backlog) -> ExtractionStatus | None:
    """What `status` says of extraction; None where nothing waits and nothing failed."""
    outage, waiting, failed = backlog.outage, len(backlog), len(backlog.failures())
    if not (outage or waiting or failed):
        return None
    return ExtractionStatus(
        waiting=waiting,
        failed=failed,
        waiting_for="hippoctl backfill" if backlog.hold and waiting else outage.reason if outage else None,
        since=moment(outage.since) if outage else None,
    )


def count_tokens(extractions: Iterable[Extraction]) -> None:
    """Of the model in this process; a server's are counted as its answers come (`daemon.models`)."""
    for extraction in extractions:
        TOKENS.labels("backfill", "prompt").inc(extraction.prompt_tokens)
        TOKENS.labels("backfill", "completion").inc(extraction.completion_tokens)
