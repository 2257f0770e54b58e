"""The settings of retrieval: each is declared here once, with its default, bounds and meaning. A mode names those it reads.

The section `[retrieval]` of the configuration, the `settings` of a request, `hippoctl --set`, the comments of `config.toml` and
the table in `docs/explanation/retrieval.md` derive from this declaration or are tested against it. This module imports nothing
heavy: clients read it too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from memory.retrieval.modes import MODES

DAMPING_MAX = 0.99
"""Towards 1 the random walk takes ever more steps: over 80,000 nodes at most 98 at a damping of 0.9, 308 at 0.99 and 42,000 at
0.999999."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One declared setting. `kind` is int, float, bool or str.

    `bounds` holds `ge`, `gt`, `le` of a number as far as they apply; `choices` are the words that a str may be.
    """

    name: str
    kind: type[Any]
    default: Any
    bounds: Mapping[str, Any]
    choices: tuple[str, ...]
    meaning: str
    """One sentence for the user."""
    modes: tuple[str, ...]
    """The modes that read the setting, as `memory.retrieval.modes` says; it changes nothing in the others."""


def _setting(default: Any, meaning: str, *choices: str, **bounds: float) -> Any:
    return field(default=default, metadata={"meaning": meaning, "choices": choices, "bounds": bounds})


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """The settings of one query. Defaults are the paper's (HippoRAG 2, appendix on implementation) where it has them."""

    top_triples: int = _setting(
        5,
        "How many triples, those nearest to the query, the query is linked to.",
        ge=1,
        le=10_000,
    )
    seed_phrases: int = _setting(5, "How many phrases, the heaviest, the walk starts from.", ge=1, le=10_000)
    passage_weight: float = _setting(
        0.05,
        "Weight of a passage as a start of the walk, times its similarity to the query.",
        ge=0,
        le=1,
    )
    damping: float = _setting(
        0.5,
        "Probability that the walk follows an edge; otherwise it goes back to one of its starts.",
        gt=0,
        le=DAMPING_MAX,
    )
    walk: str = _setting(
        "pagerank",
        "How weight spreads from the seeds: by PageRank, to their neighbours alone, or not at all, for comparison.",
        "pagerank",
        "neighbours",
        "none",
    )
    entities: str = _setting(
        "auto",
        "Who names the query's entities: the rules, or the model where there is one, which fused asks only by llm.",
        "auto",
        "llm",
        "rules",
    )
    node_specificity: bool = _setting(
        True,
        "Whether a phrase counts for less the more passages hold it; false in hipporag2 is as its paper has it.",
    )
    synonym_edges: bool = _setting(True, "Whether the walk follows edges between synonyms; false is for comparison.")
    passage_nodes: bool = _setting(
        True,
        "Whether passages are nodes of the graph that is walked; false ranks them by their phrases alone, for comparison.",
    )
    passage_share: float = _setting(
        0.5,
        "Share of the starts that falls on passages; the rest on phrases, as far as the encoder knows the query.",
        ge=0,
        le=1,
    )
    name_share: float = _setting(0.25, "Of what falls on phrases, the share of those that the query names.", ge=0, le=1)
    hop_share: float = _setting(
        0.4,
        "Of what falls on passages, the most that goes on to the passages which the first ones lead to.",
        ge=0,
        le=1,
    )
    links: bool = _setting(
        True, "Whether the links that authors set lead from the best passages to the documents they name."
    )
    document_passages: int = _setting(
        2,
        "How many passages of one document may be among the first five; one fewer where links lead to others.",
        ge=1,
        le=10_000,
    )
    temperature: float = _setting(
        0.25,
        "How far from the best match a start may lie, in standard deviations; a smaller value takes the best match alone.",
        ge=0.01,
        le=10,
    )
    exact: bool = _setting(
        False,
        "Whether a large memory is compared and walked exactly; false is faster, with bounds on what that may change.",
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
"""Every setting by its name, in the order of the configuration."""
