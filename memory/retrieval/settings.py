"""Declares the settings of retrieval, each with default, bounds and meaning. A mode declares which of these settings it uses.

The section `[retrieval]` of the configuration, the `settings` of a request, `hippoctl --set` and the comments of `config.toml`
derive from this declaration or are tested against it. This module imports nothing heavy, because clients import it too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from memory.retrieval.modes import MODES

MAX_DAMPING = 0.99
"""Upper bound of the damping, because the number of steps of the walk grows without limit as the damping approaches 1. Over
80,000 nodes, the walk takes at most 98 steps at damping 0.9, 308 at 0.99, and 42,000 at 0.999999."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One declared setting. `kind` is int, float, bool or str.

    `bounds`: the limits `ge`, `gt` and `le` of a number, if any. `choices`: the allowed values of a str.
    """

    name: str
    kind: type[Any]
    default: Any
    bounds: Mapping[str, Any]
    choices: tuple[str, ...]
    meaning: str
    """One sentence for the user."""
    modes: tuple[str, ...]
    """The modes that use the setting (see `memory.retrieval.modes`); other modes ignore it."""


def _setting(default: Any, meaning: str, *choices: str, **bounds: float) -> Any:
    return field(default=default, metadata={"meaning": meaning, "choices": choices, "bounds": bounds})


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """The settings of one query. Defaults are the paper's (HippoRAG 2, appendix on implementation), if the paper gives them."""

    top_triples: int = _setting(
        5,
        "Number of triples nearest to the query that the query is linked to.",
        ge=1,
        le=10_000,
    )
    seed_phrases: int = _setting(
        5, "Number of phrases, those with the largest weights, that the walk starts from.", ge=1, le=10_000
    )
    passage_weight: float = _setting(
        0.05,
        "Weight of each passage as a start of the walk, multiplied by its similarity to the query.",
        ge=0,
        le=1,
    )
    damping: float = _setting(
        0.5,
        "Probability that the walk follows an edge instead of returning to a start.",
        gt=0,
        le=MAX_DAMPING,
    )
    walk: str = _setting(
        "pagerank",
        "How weight spreads from the seeds: by PageRank, to neighbours only, or not at all; the last two are for comparison.",
        "pagerank",
        "neighbours",
        "none",
    )
    entities: str = _setting(
        "auto",
        "What names the query's entities: llm, rules, or auto, which is the model if one is configured, except in fused.",
        "auto",
        "llm",
        "rules",
    )
    node_specificity: bool = _setting(
        True,
        "Whether a phrase counts less the more passages contain it; false in hipporag2 is as in its paper.",
    )
    synonym_edges: bool = _setting(True, "Whether the walk follows synonym edges; false is for comparison.")
    passage_nodes: bool = _setting(
        True,
        "Whether passages are nodes of the graph; false ranks them by their phrases only, for comparison.",
    )
    passage_share: float = _setting(
        0.5,
        "Share of the start weight given to passages; phrases get the rest, less if the encoder does not know the query.",
        ge=0,
        le=1,
    )
    name_share: float = _setting(
        0.25, "Share of the phrases' weight given to phrases that the query names.", ge=0, le=1
    )
    hop_share: float = _setting(
        0.4,
        "Largest share of the passages' weight that moves on to the passages that these lead to.",
        ge=0,
        le=1,
    )
    links: bool = _setting(
        True, "Whether links that authors wrote lead from the best passages to the documents that they name."
    )
    document_passages: int = _setting(
        2,
        "Largest number of passages of one document among the first five; one fewer if links lead to other documents.",
        ge=1,
        le=10_000,
    )
    temperature: float = _setting(
        0.25,
        "How far behind the best match a start may be, in standard deviations; smaller values favour the best match.",
        ge=0.01,
        le=10,
    )
    exact: bool = _setting(
        False,
        "Whether a large memory is searched exactly; false is faster, and its errors are bounded.",
    )


SETTINGS: Mapping[str, Setting] = {
    each.name: Setting(
        each.name,
        type(each.default),
        each.default,
        modes=tuple(mode.name for mode in MODES.values() if each.name in mode.settings),
        **each.metadata,
    )
    for each in fields(RetrievalSettings)
}
"""All settings by name, in the order of the configuration."""
