"""The registry of retrieval modes. A mode is a function in a file of this folder that ranks the passages.

The configuration, the contract, `hippoctl --mode` and its completion, the page, and the table in
`docs/explanation/retrieval.md` derive from this registry or are tested against it. A mode's file (and numpy) is imported at the
mode's first use, because clients import the registry too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory.retrieval.mode_result import Ranking
    from memory.retrieval.query_context import QueryContext

DEFAULT_MODE = "fused"


@dataclass(frozen=True, slots=True)
class RetrievalMode:
    """A way to rank passages for a query. Its function is in the file `module` and has the mode's name, with "_" instead of
    "-"."""

    name: str
    summary: str
    """One sentence for the user."""
    needs_encoder: bool = True
    """Whether the query is embedded."""
    walks_graph: bool = True
    """Whether Personalized PageRank ranks the passages, if the query can be linked to the graph."""
    settings: tuple[str, ...] = ()
    """Names of the settings that the mode uses (`memory.retrieval.settings`)."""
    module: str = "published"

    def rank(self, context: "QueryContext") -> "Ranking":
        """Scores every passage for the query. Supports any query, also on an empty memory."""
        module = import_module(f"{__name__}.{self.module}")
        ranking: Ranking = getattr(module, self.name.replace("-", "_"))(context)
        return ranking


_WALK = ("damping", "node_specificity", "synonym_edges", "exact")
_FUSED = ("hop_share", "links", "document_passages", "temperature")
_REGISTERED = (
    RetrievalMode(
        "fused",
        "Walks from the nearest triples, names in the query, passages near it or named in it, and their next passages.",
        settings=(*_WALK, "top_triples", "entities", "passage_nodes", "passage_share", "name_share", *_FUSED),
        module="fused",
    ),
    RetrievalMode(
        "hipporag2",
        "HippoRAG 2: walks from the heaviest phrases of the nearest triples and from every passage.",
        settings=(*_WALK, "top_triples", "seed_phrases", "passage_weight", "passage_nodes"),
    ),
    RetrievalMode(
        "query-to-node",
        "Walks from the phrases nearest to the query and from every passage.",
        settings=(*_WALK, "seed_phrases", "passage_weight", "passage_nodes"),
    ),
    RetrievalMode(
        "ner-to-node",
        "Walks from the phrase nearest to each name in the query and from every passage.",
        settings=(*_WALK, "passage_weight", "entities", "passage_nodes"),
    ),
    RetrievalMode(
        "hipporag",
        "HippoRAG 1: walks over phrases alone, from the phrase nearest to each name in the query.",
        settings=(*_WALK, "walk", "entities"),
    ),
    RetrievalMode("dense", "Ranks passages by their cosine with the query.", walks_graph=False, settings=("exact",)),
    RetrievalMode(
        "bm25", "Ranks the passages that share a word with the query, by BM25.", needs_encoder=False, walks_graph=False
    ),
)
MODES: Mapping[str, RetrievalMode] = {mode.name: mode for mode in _REGISTERED}
"""All modes by name, in the order in which users see them."""
