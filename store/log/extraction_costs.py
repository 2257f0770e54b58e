"""What extraction has cost: of the readings that there are by their rows, of those that were purged by what the log says."""

from typing import Any

from store.log.commits import Costs
from store.types import ExtractionStatus, extraction_state

COSTS = ("extractor", "status", "prompt_tokens", "completion_tokens")
"""The columns of `extractions` that say so."""


def costs_of(extractions: Any) -> Costs:
    """By extractor: how many extractions, prompt tokens and completion tokens. `extractions`: a table with `COSTS`.

    A failed extraction is none. What a stand-in read is counted apart from what the same extractor read as the configured one.
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
        if row["status"] != ExtractionStatus.FAILED
    }


def together(some: Costs, others: Costs) -> Costs:
    none = (0, 0, 0)
    return {
        name: (a + d, b + e, c + f)
        for name in sorted({*some, *others})
        for (a, b, c), (d, e, f) in [(some.get(name, none), others.get(name, none))]
    }
