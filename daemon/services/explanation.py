"""Converts explanations of an answer to the API's types, with texts, ids and documents instead of rows."""

from daemon.contract.query import (
    Explanation,
    LedByLink,
    PassageExplanation,
    PassageReference,
    PassageShare,
    PathStep,
    PhraseShare,
    StatedTriple,
    StrongestPath,
)
from daemon.services.documents.document_references import passage_source
from memory.explain import explanation as computed
from memory.types import Retrieved
from store.snapshot import DocumentLookup, Snapshot

TRIPLES_PER_EDGE_MAX = 5
"""Maximum triples in the explanation of an edge."""
PASSAGES_PER_TRIPLE_MAX = 5
"""Maximum passages in the explanation of a triple."""


def explanation(documents: DocumentLookup, snapshot: Snapshot, found: Retrieved) -> Explanation:
    """Returns the explanations of `found`, which must be an answer from `snapshot`."""
    names = _Names(documents, snapshot)
    return Explanation(
        stages_ms={name: round(took, 3) for name, took in found.stages_ms.items()},
        passages=[names.passage(rank, each) for rank, each in enumerate(found.explanations, 1)],
    )


class _Names:
    def __init__(self, documents: DocumentLookup, snapshot: Snapshot) -> None:
        self._documents = documents
        self._snapshot = snapshot

    def passage(self, rank: int, found: computed.PassageExplanation) -> PassageExplanation:
        snapshot = self._snapshot
        return PassageExplanation(
            rank=rank,
            id=snapshot.passage_id(found.row),
            similarity=found.similarity,
            own_share=found.own_share,
            seeds=[PhraseShare(phrase=snapshot.phrase(each.row), share=each.share) for each in found.phrase_shares],
            other_share=found.other_share,
            others=[
                PassageShare(share=each.share, **self._named(each.row).model_dump()) for each in found.passage_shares
            ],
            path=self._path(found.path) if found.path else None,
            link=self._link(found.link) if found.link else None,
            hub_factor=found.hub_factor if found.hub_factor < 1.0 else None,
            near_duplicate_of=snapshot.passage_id(leader) if (leader := found.near_duplicate_of) is not None else None,
            group_size=found.group_size if leader is not None else None,
        )

    def _link(self, link: computed.FollowedLink) -> LedByLink:
        return LedByLink(source=self._named(link.source), target=link.target, heading=link.heading, text=link.text)

    def _path(self, path: computed.StrongestPath) -> StrongestPath:
        return StrongestPath(share=path.share, steps=[self._step(node) for node in path.nodes])

    def _step(self, node: computed.PathNode) -> PathStep:
        named = self._named(node.row) if node.is_passage else None
        edge = node.edge
        return PathStep(
            kind="passage" if named else "phrase",
            text=named.title if named else self._snapshot.phrase(node.row),
            id=named.id if named else None,
            edge=edge.kind if edge else None,
            weight=edge.weight if edge else None,
            triples=[self._triple(each) for each in edge.triples[:TRIPLES_PER_EDGE_MAX]] if edge else [],
        )

    def _triple(self, stated: computed.StatedTriple) -> StatedTriple:
        subject, predicate, object_ = stated.triple
        passages = [self._named(row) for row in stated.passages[:PASSAGES_PER_TRIPLE_MAX]]
        return StatedTriple(subject=subject, predicate=predicate, object=object_, passages=passages)

    def _named(self, row: int) -> PassageReference:
        passage = self._snapshot.passage(row)
        source = passage_source(self._documents, passage.id, passage.title)
        return PassageReference(id=passage.id, title=source.title, document=source.uri)
