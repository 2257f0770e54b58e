"""Extrapolates the cost of extraction from passages that were extracted already."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from daemon.contract.query import Tokens
from daemon.contract.status import ExtractionEstimate
from daemon.costs.ledger import Price
from store.types import Extraction

SAMPLE_PASSAGES = 10
"""Number of extracted passages that an estimate needs."""

log = structlog.get_logger()


@dataclass(slots=True)
class ExtractedSample:
    """Number of extracted passages, and the sums of their tokens and times."""

    passages: int = 0
    prompt: int = 0
    completion: int = 0
    ms: float = 0.0

    def add(self, extraction: Extraction) -> None:
        self.passages += 1
        self.prompt += extraction.prompt_tokens
        self.completion += extraction.completion_tokens
        self.ms += extraction.took_ms


class CostEstimator:
    """Estimates for one extractor, which makes `calls_per_passage` calls for a passage and extracts `at_once` passages
    concurrently."""

    def __init__(self, price: Callable[[], Price | None], calls_per_passage: int, at_once: int) -> None:
        self._price = price
        self._calls_per_passage = calls_per_passage
        self._at_once = at_once

    def calls(self, passages: int) -> int:
        """Returns the minimum number of calls; cut-off or unusable answers need further calls."""
        return passages * self._calls_per_passage

    def estimate(self, passages: int, sample: ExtractedSample) -> ExtractionEstimate | None:
        """Returns the estimate for `passages` passages; None for an extractor without a model or a sample without passages."""
        if not self._calls_per_passage or not sample.passages:
            return None
        share = passages / sample.passages
        prompt, completion = round(share * sample.prompt), round(share * sample.completion)
        price = self._price()
        at_once = min(self._at_once, sample.passages)
        return ExtractionEstimate(
            passages=passages,
            calls=self.calls(passages),
            tokens=Tokens(prompt=prompt, completion=completion),
            money=None if price is None else round(price.money(prompt, completion), 6),
            left_s=round(share * sample.ms / 1000 / at_once, 1),
        )


def log_estimate(estimate: ExtractionEstimate, extracted: int) -> None:
    """Logs what the waiting passages will cost, estimated from `extracted` passages."""
    log.info(
        "extraction_estimated",
        extracted=extracted,
        passages=estimate.passages,
        calls=estimate.calls,
        prompt_tokens=estimate.tokens.prompt,
        completion_tokens=estimate.tokens.completion,
        money=estimate.money,
        left_s=estimate.left_s,
    )
