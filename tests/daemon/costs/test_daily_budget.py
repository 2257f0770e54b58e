"""A used-up budget pauses extraction until the next UTC day or a higher budget; calls of queries count too."""

import asyncio

import pytest

from daemon.costs import daily_budget
from daemon.costs.daily_budget import Budget, DailyBudget
from daemon.costs.ledger import CostLedger, Price
from daemon.pipeline.extraction.journal import ExtractionJournal
from daemon.pipeline.extraction.queue import ExtractionQueue
from memory.batch_encoding import with_vectors
from memory.encoder.hashing import HashEncoder
from store.store import Store
from store.types import Batch, Document, Extraction, PassageRef, PassageText, passage_id
from tests.daemon.costs.test_ledger import DAY_S, Clock

NAME = "llm/m/1"


@pytest.mark.parametrize(("budget", "key"), [(Budget(tokens=100), "tokens"), (Budget(money=0.001), "money")])
def test_exhausted_budget_resets_on_the_next_day_or_if_raised(budget: Budget, key: str) -> None:
    clock = Clock()
    ledger = CostLedger(None, lambda: Price(10.0, 10.0), clock)
    present = budget
    daily = DailyBudget(ledger, lambda: present)
    ledger.count("filter", 90, 9)
    assert daily.exhausted() is None
    ledger.count("filter", 1, 0)
    reason = daily.exhausted()
    assert reason is not None and f"budget_{key}_per_day" in reason and "1970-01-02 00:00 UTC" in reason
    assert daily.paused_since is not None
    present = Budget(tokens=1000, money=1.0)
    assert daily.exhausted() is None
    present = budget
    assert daily.exhausted() is not None
    clock.now += 0.5 * DAY_S
    assert daily.exhausted() is None and daily.paused_since is None


def test_extraction_pauses_within_the_budget_and_resumes_the_next_day(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(daily_budget, "CHECK_INTERVAL_S", 0.005)
    clock, encoder = Clock(), HashEncoder(64)
    ledger = CostLedger(None, lambda: None, clock)
    texts = [PassageText(passage_id("", f"text {n}"), "", f"text {n}") for n in range(6)]

    async def read(passage: PassageText) -> Extraction:
        ledger.count("triples", 100, 0)
        return Extraction(passage.id, NAME, prompt_tokens=100)

    async def run() -> None:
        with Store(tmp_path / "store", encoder.identity) as store:
            documents = tuple(Document(f"added:{t.id}", "added", passages=(PassageRef(t.id),)) for t in texts)
            store.commit(with_vectors(store, encoder, Batch(documents=documents, passages=tuple(texts))))

            async def commit(found) -> None:
                store.commit(with_vectors(store, encoder, Batch(extractions=tuple(found.values()))))

            journal = ExtractionJournal(tmp_path / "openie.jsonl", NAME)
            budget = DailyBudget(ledger, lambda: Budget(tokens=300))
            queue = ExtractionQueue(store, NAME, read, journal, 1, budget=budget)
            queue.start(commit)
            await queue.all_committed()
            while (waits_for := queue.waits_for) is None:
                await asyncio.sleep(0.005)
            assert "budget_tokens_per_day" in waits_for.reason
            await queue.all_committed()
            assert ledger.today().calls == 3 and len(queue) == 3
            clock.now += DAY_S
            await queue.drained()
            assert ledger.today().calls == 3 and queue.waits_for is None
            await queue.stop()

    asyncio.run(asyncio.wait_for(run(), 60))
