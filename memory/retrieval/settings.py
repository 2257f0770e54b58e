"""The settings of retrieval: each is declared here once, with its default, its bounds, its meaning and the modes that read it.

The section `[retrieval]` of the configuration, the `settings` of a request, `hippoctl --set`, the comments of `config.toml` and
the table in `docs/retrieval.md` derive from this declaration or are tested against it. This module imports nothing heavy:
clients read it too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

DAMPING_MAX = 0.99
"""The steps of the random walk grow without bound towards 1: over 80,000 nodes it takes at most 98 steps at a damping of 0.9,
308 at 0.99 and 42,000 at 0.999999."""

_LINKING = ("fused", "hipporag2", "query-to-node", "ner-to-node")


@dataclass(frozen=True, slots=True)
class Setting:
    """One declared setting. `kind` is int, float or bool; `bounds` holds `ge`, `gt`, `le` as far as they apply."""

    name: str
    kind: type[Any]
    default: Any
    bounds: Mapping[str, Any]
    meaning: str
    """One sentence for the user."""
    modes: tuple[str, ...]
    """The modes that read the setting; it changes nothing in the others."""


def _setting(default: Any, meaning: str, modes: tuple[str, ...], **bounds: float) -> Any:
    return field(default=default, metadata={"meaning": meaning, "modes": modes, "bounds": bounds})


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """What a query is answered with. Defaults are the paper's (HippoRAG 2, appendix on implementation) where it has them."""

    top_triples: int = _setting(
        5,
        "How many triples, those nearest to the query, the query is linked to.",
        ("fused", "hipporag2"),
        ge=1,
        le=10_000,
    )
    seed_phrases: int = _setting(
        5, "How many phrases, the heaviest, the walk starts from.", ("hipporag2", "query-to-node"), ge=1, le=10_000
    )
    passage_weight: float = _setting(
        0.05,
        "Weight of a passage as a start of the walk, times its similarity to the query.",
        ("hipporag2", "query-to-node", "ner-to-node"),
        ge=0,
        le=1,
    )
    damping: float = _setting(
        0.5,
        "Probability that the walk follows an edge; otherwise it goes back to one of its starts.",
        (*_LINKING, "hipporag"),
        gt=0,
        le=DAMPING_MAX,
    )
    passage_nodes: bool = _setting(
        True,
        "Whether passages are nodes of the graph that is walked; false ranks them by their phrases alone, for comparison.",
        _LINKING,
    )
    passage_share: float = _setting(
        0.5, "Share of the walk's starts that falls on passages; the rest falls on phrases.", ("fused",), ge=0, le=1
    )
    name_share: float = _setting(
        0.25, "Of what falls on phrases, the share of those that the query names.", ("fused",), ge=0, le=1
    )
    temperature: float = _setting(
        0.25,
        "How far from the best match a start may lie, in standard deviations; a smaller value takes the best match alone.",
        ("fused",),
        ge=0.01,
        le=10,
    )


SETTINGS: Mapping[str, Setting] = {
    each.name: Setting(each.name, type(each.default), each.default, **each.metadata)
    for each in fields(RetrievalSettings)
}
"""Every setting by its name, in the order of the configuration."""
