"""`hippod --estimate`: what the configured model will cost for the configured folders, before anything is extracted.

The folders are parsed into a temporary store, and a random sample of their passages is extracted. The sample's extractions go
to the real store's journal, and its costs to the real store's ledger, so that the next start uses them.
"""

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from daemon.api.event_hub import EventHub
from daemon.app.open_memory import Memory, OpeningStep
from daemon.config import Config
from daemon.config.model_sections import Encoder
from daemon.contract.status import ExtractionResponse
from daemon.costs.ledger import FILE as COSTS
from daemon.costs.ledger import CostLedger
from daemon.model_factory import JOURNAL, price
from daemon.pipeline.extraction.journal import ExtractionJournal
from daemon.runtime.reload import ActiveConfig
from daemon.runtime.service_manager import Notifier
from daemon.sources.registry import SOURCE_KINDS
from memory.openie.registry import OPENIE_BACKENDS
from store.log.store_lock import StoreLock
from store.log.store_summary import encoder_of_store, summary_of_store
from store.store import Store
from store.types import ExtractionOutcome

LEFT_OUT = tuple(kind for kind in SOURCE_KINDS if kind.table != "folder")
"""Sources whose documents cannot be counted without consuming them."""


def estimate(config: Config, lock: StoreLock) -> list[str]:
    """Returns the lines of the report. `lock`: the lock of the real store. Raises StoreError."""
    backend = OPENIE_BACKENDS[config.openie.backend]
    if not backend.calls_per_passage:
        return [f'[openie] backend = "{backend.name}" calls no model server: extraction costs no tokens']
    name = backend.extractor_name(config.llm.model or "")
    extracted = _extracted_passages(config, lock, name)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=config.store.path) as folder:
        waiting, plan = asyncio.run(_plan(config, Path(folder), extracted))
    lines = _report(plan, len(waiting) - (plan.passages or 0))
    return [*lines, *(f"Documents of [[{kind.table}]] are not included." for kind in LEFT_OUT if config.tables(kind))]


def _extracted_passages(config: Config, lock: StoreLock, extractor: str) -> set[str]:
    """Returns the passages of the real store that the model has extracted."""
    identity, summary = encoder_of_store(config.store.path), summary_of_store(config.store.path)
    if identity is None or summary is None:
        return set()
    rule = config.synonym_rule(summary.calibration)
    with Store(config.store.path, identity, rule, lock, summary.calibration) as store:
        return set(
            store.passages_by_extraction(
                lambda state: (
                    state is not None and state.status is ExtractionOutcome.DONE and state.extractor == extractor
                )
            )
        )


async def _plan(config: Config, folder: Path, extracted: set[str]) -> tuple[list[str], ExtractionResponse]:
    """Parses the folders into a temporary store; returns their passages, and the plan for those not in `extracted`."""
    store = config.store.model_copy(update={"path": folder})
    encoder = Encoder(backend="hash", model="16")
    openie = config.openie.model_copy(update={"fallback": "none", "reextract": "off"})
    sources = {kind.table: () for kind in LEFT_OUT}
    scratch = config.model_copy(update={"store": store, "encoder": encoder, "openie": openie, **sources})
    async with AsyncExitStack() as stack:
        memory = Memory(stack, ActiveConfig(scratch, None))
        await memory.open(StoreLock(folder), EventHub(), OpeningStep(Notifier()))
        memory.pipeline.start()
        for source in memory.sources:
            source.start()
        await asyncio.gather(*(source.delivered() for source in memory.sources))
        await memory.pipeline.drained()
        waiting = memory.extraction_queue.unfinished()
        plan = await memory.ports.extractions.plan([id for id in waiting if id not in extracted])
        _keep(config, memory)
    return waiting, plan


def _keep(config: Config, memory: Memory) -> None:
    """Moves the sample's extractions and costs to the real store."""
    journal = ExtractionJournal(config.store.path / JOURNAL, memory.extraction_queue.name)
    for extraction in memory.extraction_queue.journalled():
        journal.found(extraction)
    journal.close()
    ledger = CostLedger(config.store.path / COSTS, lambda: price(config))
    for key, spent in memory.costs.entries():
        ledger.record(key, spent)
    ledger.close()


def _report(plan: ExtractionResponse, extracted: int) -> list[str]:
    lines = [f"{plan.passages:,} passages to extract; {extracted:,} others are extracted already"]
    lines.append(f"at least {plan.calls:,} calls of {plan.extractor}")
    if plan.tokens is not None:
        lines.append(f"about {plan.tokens.prompt:,} prompt and {plan.tokens.completion:,} completion tokens")
    if plan.money is not None:
        lines.append(f"about {plan.money:,.2f} at [llm] price_per_million")
    if plan.left_s:
        lines.append(f"about {plan.left_s / 3600:,.1f} hours at the rate of the sample")
    return [*lines, *([plan.note] if plan.note else [])]
