"""`graph`: converts a neighbourhood of the graph to the API's types, with texts, ids and documents instead of rows."""

import time

from daemon.contract.documents import TripleText
from daemon.contract.graph import GraphEdge, GraphNode, GraphPath, GraphRequest, GraphResponse
from daemon.contract.query import SeedPhrase
from daemon.services.documents.document_references import passage_source
from daemon.services.query import QueryService, ResolvedQuery
from memory.explain.neighbourhood import EDGE_KINDS, Neighbourhood, node_neighbourhood, query_neighbourhood
from memory.phrase_normalisation import normalise_phrase
from memory.retrieval.query_context import QueryContext
from store.snapshot import DocumentLookup, Snapshot

EXCERPT_CHARS = 280
"""Maximum characters of a passage in a node."""


class GraphService:
    """Serves `POST /v1/graph`. Uses the threads, settings and limits of queries."""

    def __init__(self, queries: QueryService) -> None:
        self._queries = queries

    async def graph(self, request: GraphRequest) -> GraphResponse | None:
        """Answers from one snapshot. Returns None if the phrase or passage to expand is unknown. Raises like a query."""
        return await self._queries.run(request, self._answer)

    def _answer(self, request: GraphRequest, resolved: ResolvedQuery) -> GraphResponse | None:
        snapshot, context = resolved.snapshot, None
        if request.query is not None:
            context = QueryContext(
                snapshot,
                resolved.encoder,
                request.query,
                resolved.settings,
                resolved.recognition,
                request.k,
                resolved.entities,
                documents=resolved.documents,
                pause=resolved.pause,
            )
        if context is not None and request.phrase is None and request.passage is None:
            return self._graph_response(request, resolved, query_neighbourhood(context, resolved.mode, request.nodes))
        centre = _centre(snapshot, request)
        if centre is None:
            return None
        return self._graph_response(
            request, resolved, node_neighbourhood(context, resolved.mode, snapshot, centre, request.nodes)
        )

    def _graph_response(self, request: GraphRequest, resolved: ResolvedQuery, found: Neighbourhood) -> GraphResponse:
        snapshot = resolved.snapshot
        ids = [_id(snapshot, node) for node in found.nodes.tolist()]
        ranks = {snapshot.n_phrases + hit.row: rank for rank, hit in enumerate(found.hits, 1)}
        edges = found.edges
        ends = zip(edges.sources.tolist(), edges.targets.tolist(), strict=True)
        rows = zip(ends, edges.kinds.tolist(), edges.weights.tolist(), edges.triples, strict=True)
        return GraphResponse(
            query=request.query,
            mode=resolved.mode if request.query is not None else None,
            centre=ids[0] if found.neighbours is not None else None,
            neighbours=found.neighbours,
            commit=snapshot.commit,
            nodes=[_node(resolved.documents, found, at, node, ranks) for at, node in enumerate(found.nodes.tolist())],
            edges=[
                GraphEdge(
                    source=ids[source],
                    target=ids[target],
                    type=EDGE_KINDS[kind],
                    weight=weight,
                    triples=[TripleText(subject=s, predicate=p, object=o) for s, p, o in triples],
                )
                for (source, target), kind, weight, triples in rows
            ],
            edges_between=edges.edges_between,
            seeds=[SeedPhrase(phrase=seed.phrase, weight=seed.weight) for seed in found.seeds],
            paths=[
                GraphPath(
                    passage=_id(snapshot, snapshot.n_phrases + path.passage),
                    rank=ranks[snapshot.n_phrases + path.passage],
                    share=path.share,
                    nodes=[_id(snapshot, node) for node in path.nodes],
                )
                for path in found.paths
            ],
            note=resolved.noted(found.note),
            took_ms=round((time.perf_counter() - resolved.began) * 1000, 3),
        )


def _node(documents: DocumentLookup, found: Neighbourhood, at: int, node: int, ranks: dict[int, int]) -> GraphNode:
    snapshot = found.snapshot
    mass = float(found.mass[at]) if found.mass is not None else None
    reset = (float(found.reset[at]) or None) if found.reset is not None else None
    links = int(found.edges.degrees[at])
    if node < snapshot.n_phrases:
        return GraphNode(
            id=_id(snapshot, node), kind="phrase", text=snapshot.phrase(node), mass=mass, reset=reset, links=links
        )
    passage = snapshot.passage(node - snapshot.n_phrases)
    source = passage_source(documents, passage.id, passage.title)
    return GraphNode(
        id=_id(snapshot, node),
        kind="passage",
        text=source.title,
        mass=mass,
        reset=reset,
        rank=ranks.get(node),
        links=links,
        document=source.uri,
        excerpt=passage.text[:EXCERPT_CHARS],
    )


def _centre(snapshot: Snapshot, request: GraphRequest) -> int | None:
    if request.passage is not None:
        row = snapshot.passage_row(request.passage)
        return None if row is None else snapshot.n_phrases + row
    return snapshot.phrase_row(normalise_phrase(request.phrase or ""))


def _id(snapshot: Snapshot, node: int) -> str:
    if node < snapshot.n_phrases:
        return f"phrase:{snapshot.phrase(node)}"
    return f"passage:{snapshot.passage_id(node - snapshot.n_phrases)}"
