"""Costs of extraction: the sum over the rows of `extractions`, and the sum in the log for extractions without a row."""

from typing import Any

from store.types import ExtractionCosts, ExtractionOutcome, extraction_state

COSTS = ("extractor", "status", "prompt_tokens", "completion_tokens")
"""The columns of `extractions` that `costs_of` needs."""


def costs_of(extractions: Any) -> ExtractionCosts:
    """Returns, by extractor: number of extractions, prompt tokens and completion tokens. `extractions` is a table with the
    columns `COSTS`.

    Failed extractions do not count. Extractions by a stand-in are counted separately.
    """
    sums = extractions.group_by(["extractor", "status"]).aggregate(
        [("prompt_tokens", "count"), ("prompt_tokens", "sum"), ("completion_tokens", "sum")]
    )
    return {
        extraction_state(row["extractor"], row["status"], 0, None).label: (
            row["prompt_tokens_count"],
            row["prompt_tokens_sum"] or 0,
            row["completion_tokens_sum"] or 0,
        )
        for row in sums.to_pylist()
        if row["status"] != ExtractionOutcome.FAILED
    }


def add_costs(some: ExtractionCosts, others: ExtractionCosts) -> ExtractionCosts:
    """Returns the sums of both costs, by extractor."""
    none = (0, 0, 0)
    return {
        name: (a + d, b + e, c + f)
        for name in sorted({*some, *others})
        for (a, b, c), (d, e, f) in [(some.get(name, none), others.get(name, none))]
    }
