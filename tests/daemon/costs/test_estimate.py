"""Estimates are proportional to the sample, and the first load reports one as soon as ten passages are extracted."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from cli.render.status import estimate_words
from daemon.costs.estimate import SAMPLE_PASSAGES, CostEstimator, ExtractedSample
from daemon.costs.ledger import Price
from daemon.pipeline.extraction.journal import ExtractionJournal
from daemon.pipeline.extraction.queue import ExtractionQueue
from memory.batch_encoding import with_vectors
from memory.encoder.hashing import HashEncoder
from store.store import Store
from store.types import Batch, Document, Extraction, PassageRef, PassageText, passage_id

NAME = "llm/m/1"
PASSAGES = 25


@given(st.integers(1, 10**6), st.integers(1, 50), st.integers(0, 10**6), st.integers(0, 10**6))
def test_an_estimate_is_proportional_to_its_sample(passages: int, sampled: int, prompt: int, completion: int) -> None:
    sample = ExtractedSample(sampled, prompt, completion, ms=1000.0 * sampled)
    found = CostEstimator(lambda: Price(2.0, 8.0), 2, 4).estimate(passages, sample)
    assert found is not None and found.money is not None
    assert (found.passages, found.calls) == (passages, 2 * passages)
    assert abs(found.tokens.prompt - passages * prompt / sampled) <= 0.5
    assert abs(found.tokens.completion - passages * completion / sampled) <= 0.5
    assert abs(found.money - (2 * found.tokens.prompt + 8 * found.tokens.completion) / 1e6) < 1e-6
    assert abs(found.left_s - passages / min(4, sampled)) < 0.06


def test_estimate_has_no_money_without_a_price_and_is_none_without_calls() -> None:
    sample = ExtractedSample(10, 100, 100, 1.0)
    unpriced = CostEstimator(lambda: None, 2, 1).estimate(5, sample)
    assert unpriced is not None and unpriced.money is None
    assert CostEstimator(lambda: None, 0, 1).estimate(5, sample) is None
    assert CostEstimator(lambda: None, 2, 1).estimate(5, ExtractedSample()) is None


def test_first_load_reports_an_estimate_after_ten_extracted_passages(tmp_path) -> None:
    encoder = HashEncoder(64)
    texts = [PassageText(passage_id("", f"text {n}"), "", f"text {n}") for n in range(PASSAGES)]
    shown = []

    async def run() -> None:
        with Store(tmp_path / "store", encoder.identity) as store:
            documents = tuple(Document(f"added:{t.id}", "added", passages=(PassageRef(t.id),)) for t in texts)
            store.commit(with_vectors(store, encoder, Batch(documents=documents, passages=tuple(texts))))

            async def read(passage: PassageText) -> Extraction:
                shown.append(queue.estimate())
                return Extraction(passage.id, NAME, prompt_tokens=1000, completion_tokens=100, took_ms=2000.0)

            async def commit(found) -> None:
                store.commit(with_vectors(store, encoder, Batch(extractions=tuple(found.values()))))

            estimator = CostEstimator(lambda: Price(1.0, 1.0), 2, 1)
            journal = ExtractionJournal(tmp_path / "openie.jsonl", NAME)
            queue = ExtractionQueue(store, NAME, read, journal, 1, estimate=estimator.estimate)
            queue.start(commit)
            await queue.drained()
            assert queue.estimate() is None
            await queue.stop()

    with capture_logs() as logs:
        asyncio.run(asyncio.wait_for(run(), 60))
    assert shown[:SAMPLE_PASSAGES] == [None] * SAMPLE_PASSAGES
    estimates = [each for each in shown[SAMPLE_PASSAGES:] if each is not None]
    assert len(estimates) == len(shown) - SAMPLE_PASSAGES
    left = [each.passages for each in estimates]
    assert left == list(range(PASSAGES - SAMPLE_PASSAGES, 0, -1))
    [logged] = [each for each in logs if each["event"] == "extraction_estimated"]
    assert (logged["extracted"], logged["prompt_tokens"]) == (SAMPLE_PASSAGES, 1000 * logged["passages"])
    assert (
        estimate_words(estimates[-1]) == "about 2 calls · 1,000 prompt and 100 completion tokens · 0.00 of money · 2 s"
    )
