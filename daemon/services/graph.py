"""`graph`: a neighbourhood's rows as texts, ids and documents."""

import time

from daemon.contract import (
    GraphEdge,
    GraphNode,
    GraphPath,
    GraphRequest,
    GraphResponse,
    SeedPhrase,
    TripleText,
)
from daemon.services.queries import QueryService, Terms
from memory.asking import Asked
from memory.neighbourhood import KINDS, Neighbourhood, around, neighbourhood
from memory.phrases import normalise_phrase
from store.pinned import Naming
from store.snapshot import Snapshot

EXCERPT = 280
"""Characters of a passage that a node shows."""


class GraphService:
    """The `Graphs` port: answers in the threads of the queries, with their settings and limits."""

    def __init__(self, queries: QueryService) -> None:
        self._queries = queries

    async def graph(self, request: GraphRequest) -> GraphResponse | None:
        return await self._queries.run(request, self._answer)

    def _answer(self, request: GraphRequest, terms: Terms) -> GraphResponse | None:
        snapshot, asked = terms.snapshot, None
        if request.query is not None:
            asked = Asked(snapshot, terms.encoder, request.query, terms.settings, terms.attempt, request.k)
        if asked is not None and request.phrase is None and request.passage is None:
            return self._told(request, terms, neighbourhood(asked, terms.mode, request.nodes))
        centre = _centre(snapshot, request)
        if centre is None:
            return None
        return self._told(request, terms, around(asked, terms.mode, snapshot, centre, request.nodes))

    def _told(self, request: GraphRequest, terms: Terms, found: Neighbourhood) -> GraphResponse:
        snapshot = terms.snapshot
        ids = [_id(snapshot, node) for node in found.nodes.tolist()]
        ranks = {snapshot.n_phrases + hit.row: rank for rank, hit in enumerate(found.hits, 1)}
        links = found.links
        ends = zip(links.sources.tolist(), links.targets.tolist(), strict=True)
        said = zip(ends, links.kinds.tolist(), links.weights.tolist(), links.triples, strict=True)
        return GraphResponse(
            query=request.query,
            mode=terms.mode if request.query is not None else None,
            centre=ids[0] if found.neighbours is not None else None,
            neighbours=found.neighbours,
            commit=snapshot.commit,
            nodes=[_node(terms.naming, found, at, node, ranks) for at, node in enumerate(found.nodes.tolist())],
            edges=[
                GraphEdge(
                    source=ids[source],
                    target=ids[target],
                    type=KINDS[kind],
                    weight=weight,
                    triples=[TripleText(subject=s, predicate=p, object=o) for s, p, o in triples],
                )
                for (source, target), kind, weight, triples in said
            ],
            edges_between=links.there,
            seeds=[SeedPhrase(phrase=seed.phrase, weight=seed.weight) for seed in found.seeds],
            paths=[
                GraphPath(
                    passage=_id(snapshot, snapshot.n_phrases + trail.passage),
                    rank=ranks[snapshot.n_phrases + trail.passage],
                    share=trail.share,
                    nodes=[_id(snapshot, node) for node in trail.nodes],
                )
                for trail in found.trails
            ],
            note=terms.noted(found.note),
            took_ms=round((time.perf_counter() - terms.began) * 1000, 3),
        )


def _node(naming: Naming, found: Neighbourhood, at: int, node: int, ranks: dict[int, int]) -> GraphNode:
    snapshot = found.snapshot
    mass = float(found.mass[at]) if found.mass is not None else None
    reset = (float(found.reset[at]) or None) if found.reset is not None else None
    links = int(found.links.degrees[at])
    if node < snapshot.n_phrases:
        return GraphNode(
            id=_id(snapshot, node), kind="phrase", text=snapshot.phrase(node), mass=mass, reset=reset, links=links
        )
    passage = snapshot.passage(node - snapshot.n_phrases)
    uris = naming.users(passage.id)
    document = naming.document(uris[0]) if uris else None
    return GraphNode(
        id=_id(snapshot, node),
        kind="passage",
        text=passage.title or (document.title if document else ""),
        mass=mass,
        reset=reset,
        rank=ranks.get(node),
        links=links,
        document=uris[0] if uris else "",
        excerpt=passage.text[:EXCERPT],
    )


def _centre(snapshot: Snapshot, request: GraphRequest) -> int | None:
    if request.passage is not None:
        row = snapshot.passage_row(request.passage)
        return None if row is None else snapshot.n_phrases + row
    return snapshot.phrase_row(normalise_phrase(request.phrase or ""))


def _id(snapshot: Snapshot, node: int) -> str:
    if node < snapshot.n_phrases:
        return f"phrase:{snapshot.phrase(node)}"
    return f"passage:{snapshot.passage(node - snapshot.n_phrases).id}"
