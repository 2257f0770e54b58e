"""Markdown tables of the benchmarks, and the figures in them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Returns a Markdown table. The first column is aligned to the left, the other columns to the right."""
    lines = [heads, ("---", *("---:" for _ in heads[1:])), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def figures_table(head: str, figures: Mapping[str, Any]) -> str:
    """Returns a table with one row per figure."""
    return table((head, ""), [(name.replace("_", " "), shown(value)) for name, value in figures.items()])


def shown(value: Any) -> str:
    """Formats a figure: a number, a list, or figures by name."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return " / ".join(map(str, value)) if isinstance(value, list) else str(value)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    p50, p95, p99 = (float(value) for value in np.percentile(values, (50, 95, 99)))
    return {"p50": p50, "p95": p95, "p99": p99, "max": max(values), "n": len(values)}
