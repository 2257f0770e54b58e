"""What extraction has cost: the sum over the rows of `extractions`, and the sum in the log of extractions without a row."""

from typing import Any

from store.types import ExtractionCosts, ExtractionOutcome, extraction_state

COSTS = ("extractor", "status", "prompt_tokens", "completion_tokens")
"""The columns of `extractions` that it takes."""


def costs_of(extractions: Any) -> ExtractionCosts:
    """By extractor: how many extractions, prompt tokens and completion tokens. `extractions`: a table with `COSTS`.

    A failed extraction does not count. What an extractor found as a stand-in is counted apart.
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
    """The sums, by extractor."""
    none = (0, 0, 0)
    return {
        name: (a + d, b + e, c + f)
        for name in sorted({*some, *others})
        for (a, b, c), (d, e, f) in [(some.get(name, none), others.get(name, none))]
    }
