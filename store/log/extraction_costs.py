"""Costs and durations of extraction. Costs are summed over the rows of `extractions`; the log adds the costs of extractions
without a row."""

from typing import Any

from store.types import ExtractionCosts, ExtractionOutcome, extraction_state

COSTS = ("extractor", "status", "prompt_tokens", "completion_tokens")
"""The columns of `extractions` that `costs_of` needs."""

TIMES = ("extractor", "status", "took_ms")
"""The columns of `extractions` that `times_of` needs."""


def costs_of(extractions: Any) -> ExtractionCosts:
    """Returns the number of extractions, prompt and completion tokens by extractor. `extractions` is a table with the columns
    `COSTS`.

    Failed extractions are not counted. Extractions by a stand-in are counted under a label of their own.
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
    """Returns the sum of two costs, by extractor."""
    none = (0, 0, 0)
    return {
        name: (a + d, b + e, c + f)
        for name in sorted({*some, *others})
        for (a, b, c), (d, e, f) in [(some.get(name, none), others.get(name, none))]
    }


def times_of(extractions: Any) -> dict[str, tuple[int, float]]:
    """Returns the number of extractions and the sum of their durations in ms, by extractor. `extractions` is a table with the
    columns `TIMES`. Failed extractions are not counted."""
    sums = extractions.group_by(["extractor", "status"]).aggregate([("took_ms", "count"), ("took_ms", "sum")])
    found: dict[str, tuple[int, float]] = {}
    for row in sums.to_pylist():
        if row["status"] != ExtractionOutcome.FAILED:
            count, ms = found.get(row["extractor"], (0, 0.0))
            found[row["extractor"]] = count + row["took_ms_count"], ms + (row["took_ms_sum"] or 0.0)
    return found
