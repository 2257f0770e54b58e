"""The neighbourhood of a query or of one node, for drawing: what travels of `POST /v1/graph`."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from daemon.contract.found import SeedPhrase
from daemon.contract.model import Request, Response, Whole, absent
from daemon.contract.requests import K_MAX, QUERY_CHARS, AsOf, QueryText, RetrievalOverrides
from daemon.contract.routes import Filter, Mode
from daemon.contract.show import TripleText

NODES_MAX = 2_000
"""The most nodes of one answer, whatever the memory's size; there are at most four edges for each."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=QUERY_CHARS)]


_NONE: JsonDict = {"type": "null"}
_TEXT: JsonDict = {"type": "string"}
_ABOUT: JsonDict = {"properties": {"query": _TEXT, "phrase": _NONE, "passage": _NONE}, "required": ["query"]}
_PHRASE: JsonDict = {"properties": {"phrase": _TEXT, "passage": _NONE}, "required": ["phrase"]}
_PASSAGE: JsonDict = {"properties": {"passage": _TEXT, "phrase": _NONE}, "required": ["passage"]}


class GraphRequest(Request):
    """With `query`: what it is about, as a query with the same `mode`, `k`, `filter`, `settings` and `as_of` finds it. With
    `phrase` (a text) or `passage` (an id): that node and its neighbours, by weight; a query beside it gives them their
    PageRank. At most `nodes` nodes."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [_ABOUT, _PHRASE, _PASSAGE]})

    query: QueryText | None = None
    phrase: Name | None = None
    passage: Name | None = None
    nodes: Whole = Field(default=200, ge=1, le=NODES_MAX)
    k: Whole = Field(default=5, ge=1, le=K_MAX)
    mode: Mode | None = None
    filter: Filter | None = None
    as_of: AsOf | None = None
    settings: RetrievalOverrides = RetrievalOverrides()

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if self.phrase is not None and self.passage is not None:
            raise PydanticCustomError("one_node", "give a phrase or a passage, not both")
        if self.query is None and self.phrase is None and self.passage is None:
            raise PydanticCustomError("nothing", "give a query, a phrase, or a passage's id")
        return self


class GraphNode(Response):
    """`id` is "phrase:" and the phrase, or "passage:" and its id, the same in every answer; `text` the phrase, or the passage's
    title. `mass`: its PageRank from the query's seeds, of 1 over all nodes; `reset`: its part of the reset probability, where
    it is a seed. `rank`: among the passages found. `links`: how many edges it has in the whole memory. `document` (the first
    that holds it) and `excerpt` (how it begins) are a passage's."""

    id: str
    kind: Literal["phrase", "passage"]
    text: str
    mass: float | None = Field(default=None, exclude_if=absent)
    reset: float | None = Field(default=None, exclude_if=absent)
    rank: int | None = Field(default=None, exclude_if=absent)
    links: int
    document: str | None = Field(default=None, exclude_if=absent)
    excerpt: str | None = Field(default=None, exclude_if=absent)


class GraphEdge(Response):
    """Undirected, between the ids of two nodes; of one kind, so that two phrases may be joined by two. `triples`: up to three
    of those that a relation stands for; they tell its direction."""

    source: str
    target: str
    type: Literal["relation", "synonym", "context"]
    weight: float
    triples: list[TripleText] = Field(default_factory=list, exclude_if=absent)


class GraphPath(Response):
    """The strongest way to a passage that was found: ids of nodes from the seed to it. `share` of its score went along it, at
    least a hundredth: there is no path to a passage that no single way explains."""

    passage: str
    rank: int
    share: float
    nodes: list[str]


class GraphResponse(Response):
    """`edges_between`: how many edges there are between these nodes, of which `edges` has those that matter most. `centre`: the
    node that was expanded, with `neighbours` in all. `note`: what a user should know about how this came about."""

    query: str | None = Field(default=None, exclude_if=absent)
    mode: str | None = Field(default=None, exclude_if=absent)
    centre: str | None = Field(default=None, exclude_if=absent)
    neighbours: int | None = Field(default=None, exclude_if=absent)
    commit: int
    took_ms: float
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    edges_between: int
    seeds: list[SeedPhrase] = Field(default_factory=list)
    paths: list[GraphPath] = Field(default_factory=list)
    note: str | None = Field(default=None, exclude_if=absent)
