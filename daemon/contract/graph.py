"""`POST /v1/graph`: the neighbourhood of a query or of a node, for drawing."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from daemon.contract.base import JsonInteger, Request, Response, is_empty
from daemon.contract.choices import Filter
from daemon.contract.documents import TripleText
from daemon.contract.http.routes import K_MAX, NODES_MAX, QUERY_CHARS_MAX
from daemon.contract.query import AsOf, Mode, QueryText, RetrievalOverrides, SeedPhrase
from daemon.contract.scope import Scope

NodeKey = Annotated[str, StringConstraints(min_length=1, max_length=QUERY_CHARS_MAX)]


_NULL: JsonDict = {"type": "null"}
_STRING: JsonDict = {"type": "string"}
_BY_QUERY: JsonDict = {"properties": {"query": _STRING, "phrase": _NULL, "passage": _NULL}, "required": ["query"]}
_BY_PHRASE: JsonDict = {"properties": {"phrase": _STRING, "passage": _NULL}, "required": ["phrase"]}
_BY_PASSAGE: JsonDict = {"properties": {"passage": _STRING, "phrase": _NULL}, "required": ["passage"]}


class GraphRequest(Request):
    """The part of the graph to return, at most `nodes` nodes. With `query`: the part that a query with the same `mode`, `k`,
    `filter`, `settings`, `as_of` and `scope` reaches. With `phrase` (a text) or `passage` (an id): that node and its
    neighbours, by weight; an additional `query` determines their PageRank.
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [_BY_QUERY, _BY_PHRASE, _BY_PASSAGE]})

    query: QueryText | None = None
    phrase: NodeKey | None = None
    passage: NodeKey | None = None
    nodes: JsonInteger = Field(default=200, ge=1, le=NODES_MAX)
    k: JsonInteger = Field(default=5, ge=1, le=K_MAX)
    mode: Mode | None = None
    filter: Filter | None = None
    as_of: AsOf | None = None
    scope: Scope | None = None
    settings: RetrievalOverrides = RetrievalOverrides()

    @model_validator(mode="after")
    def _names_a_centre(self) -> Self:
        if self.phrase is not None and self.passage is not None:
            raise PydanticCustomError("one_node", "give a phrase or a passage, not both")
        if self.query is None and self.phrase is None and self.passage is None:
            raise PydanticCustomError("nothing", "give a query, a phrase, or a passage's id")
        return self


class GraphNode(Response):
    """A node. `id`: "phrase:" and the phrase, or "passage:" and the passage's id. `text`: the phrase, or the passage's title.
    `mass`: its PageRank from the query's seeds; the sum over the whole memory is 1. `reset`: its reset probability, if it is a
    seed. `rank`: its rank among the found passages. `links`: its number of edges in the whole memory. Only passages have a
    `document` (the first that contains the passage) and an `excerpt` (its first characters).
    """

    id: str
    kind: Literal["phrase", "passage"]
    text: str
    mass: float | None = Field(default=None, exclude_if=is_empty)
    reset: float | None = Field(default=None, exclude_if=is_empty)
    rank: int | None = Field(default=None, exclude_if=is_empty)
    links: int
    document: str | None = Field(default=None, exclude_if=is_empty)
    excerpt: str | None = Field(default=None, exclude_if=is_empty)


class GraphEdge(Response):
    """An undirected edge between the ids of two nodes. Each edge has one type, so two phrases may have two edges. `triples`:
    up to three triples of a relation edge; triples have a direction.
    """

    source: str
    target: str
    type: Literal["relation", "mention", "synonym", "context"]
    weight: float
    triples: list[TripleText] = Field(default_factory=list, exclude_if=is_empty)


class GraphPath(Response):
    """The strongest path to a found passage: ids of nodes, from the seed to the passage. `share`: the share of the passage's
    score that came along the path; paths with less than a hundredth are omitted.
    """

    passage: str
    rank: int
    share: float
    nodes: list[str]


class GraphResponse(Response):
    """`edges_between`: number of edges between these nodes; `edges`: the most important of them. `centre`: the expanded node;
    `neighbours`: its number of neighbours. `note`: what the user should know about the answer.
    """

    query: str | None = Field(default=None, exclude_if=is_empty)
    mode: str | None = Field(default=None, exclude_if=is_empty)
    centre: str | None = Field(default=None, exclude_if=is_empty)
    neighbours: int | None = Field(default=None, exclude_if=is_empty)
    commit: int
    took_ms: float
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    edges_between: int
    seeds: list[SeedPhrase] = Field(default_factory=list)
    paths: list[GraphPath] = Field(default_factory=list)
    note: str | None = Field(default=None, exclude_if=is_empty)
