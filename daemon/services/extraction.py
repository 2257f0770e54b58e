"""`reextract`, `backfill` and `costs`: extracts passages on request, and reports the model's cost."""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import structlog

from daemon.contract.base import utc_time
from daemon.contract.costs import CostEntry, CostsRequest, CostsResponse
from daemon.contract.http.routes import Need, Route, served
from daemon.contract.query import Tokens
from daemon.contract.status import ExtractionCost, ExtractionResponse, ExtractionStatus, ReextractRequest
from daemon.costs.estimate import SAMPLE_PASSAGES, CostEstimator, ExtractedSample
from daemon.costs.ledger import CostLedger, charged_to, source_of_passage
from daemon.errors import NotConfigured
from daemon.observe.metrics import TOKENS
from daemon.pipeline.extraction.queue import ExtractionQueue
from memory.llm.errors import ModelError
from memory.openie.registry import OPENIE_BACKENDS, BulkBackend, BulkExtractor, WorkerBackend
from store.store import Store
from store.types import Extraction

BULK_BATCH_PASSAGES = 512
"""Passages per batch of the bulk extractor: enough to fill a GPU. A batch is committed before the next batch is extracted."""

log = structlog.get_logger()


class ExtractionService:
    """`bulk` loads the model for `backfill`; None if none is configured."""

    def __init__(
        self,
        store: Store,
        extraction_queue: ExtractionQueue,
        bulk: Callable[[], BulkExtractor] | None,
        note: str | None,
        estimator: CostEstimator,
        left_s: Callable[[int], float],
        ledger: CostLedger,
    ) -> None:
        """`note`, a remark about the extractor, is part of every response. `left_s` returns the seconds that the extractor
        needs for a number of passages, estimated from the stored extractions."""
        self._store = store
        self._extraction_queue = extraction_queue
        self._bulk = bulk
        self._note = note
        self._estimator = estimator
        self._left_s = left_s
        self._ledger = ledger
        self._sample: ExtractedSample | None = None
        """Figures about the sample that the last dry run extracted."""
        self._sampling = asyncio.Lock()
        self._loaded: BulkExtractor | None = None
        self._running: asyncio.Task[None] | None = None
        self._failed: str | None = None

    @served("POST", Route.REEXTRACT, Need.ADMIN, 409, body_required=False, releases_body=True)
    async def reextract(self, request: ReextractRequest) -> ExtractionResponse:
        """Extract triples again from passages whose extraction is by another extractor.

        With `dry_run`, only estimates the cost.
        """
        found = await self._extraction_queue.unread()
        return (
            await self.plan(found)
            if request.dry_run
            else await self._planned(found, self._extraction_queue.enqueue(found))
        )

    async def plan(self, passages: Sequence[str]) -> ExtractionResponse:
        """Returns the cost of extracting `passages`. Extracts a sample if the model has extracted too few passages."""
        return await self._planned(passages, None)

    async def _planned(self, found: Sequence[str], requeued: int | None) -> ExtractionResponse:
        answer = await self._answer(requeued or 0)
        left_s = await asyncio.to_thread(self._left_s, len(found))
        plan: dict[str, Any] = {
            "passages": len(found),
            "calls": self._estimator.calls(len(found)),
            "left_s": left_s,
        }
        sample = _history(answer)
        if requeued is None and plan["calls"] and sample.passages < SAMPLE_PASSAGES:
            try:
                sample = await self._extracted_sample(found)
            except ModelError as error:
                plan["note"] = f"no passage could be extracted for an estimate: {error}"
        if (estimate := self._estimator.estimate(len(found), sample)) is not None:
            plan |= {"tokens": estimate.tokens, "money": estimate.money, "left_s": left_s or estimate.left_s}
        return answer.model_copy(update=plan)

    async def _extracted_sample(self, passages: Sequence[str]) -> ExtractedSample:
        """Extracts a random sample of `passages`, once per start of hippod. Raises ModelError."""
        async with self._sampling:
            if self._sample is None:
                if (waits_for := self._extraction_queue.waits_for_budget()) is not None:
                    raise ModelError(f"extraction waits for {waits_for}")
                ids = random.sample(passages, min(SAMPLE_PASSAGES, len(passages)))
                self._sample = await self._extraction_queue.extract_sample(ids)
            return self._sample

    @served("POST", Route.BACKFILL, Need.ADMIN, 409)
    async def backfill(self) -> ExtractionResponse:
        """Extract all waiting passages with the in-process model.

        Returns at once. Raises NotConfigured if a server does the extraction.
        """
        if self._bulk is None:
            names = " or ".join(
                f'"{name}"' for name, backend in OPENIE_BACKENDS.items() if isinstance(backend, BulkBackend)
            )
            raise NotConfigured(
                f"No model can be loaded: backfill needs [openie] backend = {names} and [llm] model; with other backends, "
                "hippod extracts passages as they arrive"
            )
        started = 0
        if self._running is None or self._running.done():
            self._failed = None
            started = len(self._extraction_queue)
            self._running = asyncio.create_task(self._fill())
        return await self._answer(started)

    @served("GET", Route.EXTRACTION, Need.ADMIN, 409)
    async def extraction(self) -> ExtractionResponse:
        """Report progress and cost of extraction."""
        return await self._answer(0)

    async def _answer(self, requeued: int) -> ExtractionResponse:
        waits_for = self._extraction_queue.waits_for
        # Read before the costs: if no extraction is running, the costs then include all extractions.
        running = self._running is not None and not self._running.done()
        spent = await asyncio.to_thread(self._store.extraction_costs)
        costs = [
            ExtractionCost(extractor=name, passages=count, prompt_tokens=prompt, completion_tokens=completion)
            for name, (count, prompt, completion) in sorted(spent.items())
        ]
        return ExtractionResponse(
            extractor=self._extraction_queue.name,
            requeued=requeued,
            waiting=len(self._extraction_queue),
            failed=len(self._extraction_queue.failures()),
            running=running,
            error=self._failed,
            waiting_for=waits_for.reason if waits_for else None,
            note=self._note,
            spent=costs,
        )

    async def _fill(self) -> None:
        """Extracts all waiting passages in batches. A committed batch is not extracted again after a later error."""
        assert self._bulk is not None
        try:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(self._bulk)
            while passages := self._extraction_queue.next_passages(BULK_BATCH_PASSAGES):
                await self._extraction_queue.affordable()
                failures: dict[str, str] = {}
                extractions = await asyncio.to_thread(self._loaded.extract, passages, failures.__setitem__)
                self._count_tokens(extractions)
                for extraction in extractions:
                    self._extraction_queue.add_found(extraction)
                for id, reason in failures.items():
                    self._extraction_queue.add_failure(id, reason)
                await self._extraction_queue.all_committed()
        except Exception as error:  # an error of the library or the GPU; the passages keep waiting
            log.error("backfill_failed", error=error, exc_info=True)
            self._failed = f"{type(error).__name__}: {str(error)[:300]}"

    def _count_tokens(self, extractions: Iterable[Extraction]) -> None:
        """Counts the tokens of the in-process model. `daemon.model_factory` counts the tokens of a server."""
        for extraction in extractions:
            TOKENS.labels("backfill", "prompt").inc(extraction.prompt_tokens)
            TOKENS.labels("backfill", "completion").inc(extraction.completion_tokens)
            with charged_to(source_of_passage(self._store, extraction.passage)):
                self._ledger.count("backfill", extraction.prompt_tokens, extraction.completion_tokens)

    @served("GET", Route.COSTS, Need.ADMIN)
    async def costs(self, request: CostsRequest) -> CostsResponse:
        """Report tokens and money of model calls, by day, source and purpose."""
        since = None if request.since is None else _utc_day(request.since)
        return CostsResponse(
            costs=[
                CostEntry(
                    day=date.fromisoformat(key.day),
                    source=key.source,
                    purpose=key.purpose,
                    calls=spent.calls,
                    tokens=Tokens(prompt=spent.prompt, completion=spent.completion),
                    money=round(spent.money, 6),
                )
                for key, spent in self._ledger.entries(since)
            ]
        )

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()


def extractor_note(backend: str) -> str | None:
    """Returns a note if extraction uses no model, else None."""
    if not isinstance(OPENIE_BACKENDS[backend], WorkerBackend):
        return None
    return f'no model extracts passages: [openie] backend = "{backend}" extracts each passage when it arrives'


def extraction_status(extraction_queue: ExtractionQueue) -> ExtractionStatus | None:
    """Returns the part of `status` about extraction; None if no passage waits or has failed."""
    waits_for, waiting, failed = extraction_queue.waits_for, len(extraction_queue), len(extraction_queue.failures())
    if not (waits_for or waiting or failed):
        return None
    return ExtractionStatus(
        waiting=waiting,
        failed=failed,
        waiting_for=waits_for.reason
        if waits_for
        else "hippoctl backfill"
        if extraction_queue.bulk_only and waiting
        else None,
        since=utc_time(waits_for.since) if waits_for else None,
        estimate=extraction_queue.estimate(),
    )


def _history(answer: ExtractionResponse) -> ExtractedSample:
    """Returns the sample of the present extractor's committed extractions."""
    spent = next((each for each in answer.spent if each.extractor == answer.extractor), None)
    return (
        ExtractedSample()
        if spent is None
        else ExtractedSample(spent.passages, spent.prompt_tokens, spent.completion_tokens)
    )


def _utc_day(moment: datetime) -> date:
    try:
        return moment.astimezone(UTC).date()
    except OverflowError:  # less than a day after year 1 begins or before year 9999 ends
        return moment.date()
