"""An answer's reasons as they go over the socket: rows become texts, ids and documents."""

from daemon.contract import (
    Explanation,
    NamedPassage,
    PassageReason,
    PassageShare,
    Path,
    PathStep,
    PhraseShare,
    VouchedTriple,
)
from memory.reasons import Reason, Step, Vouched, Way
from memory.types import Retrieved
from store.pinned import Naming
from store.snapshot import Snapshot

MOST_TRIPLES = 5
MOST_VOUCHING = 5
"""Triples named of an edge, and passages of a triple."""


def explanation(naming: Naming, snapshot: Snapshot, found: Retrieved) -> Explanation:
    """The reasons of `found`, which `snapshot` answered."""
    telling = _Telling(naming, snapshot)
    return Explanation(
        stages_ms={name: round(took, 3) for name, took in found.stages_ms.items()},
        passages=[telling.reason(rank, reason) for rank, reason in enumerate(found.reasons, 1)],
    )


class _Telling:
    def __init__(self, naming: Naming, snapshot: Snapshot) -> None:
        self._naming = naming
        self._snapshot = snapshot

    def reason(self, rank: int, reason: Reason) -> PassageReason:
        snapshot = self._snapshot
        return PassageReason(
            rank=rank,
            id=snapshot.passage(reason.row).id,
            similarity=reason.similarity,
            own_share=reason.own,
            seeds=[PhraseShare(phrase=snapshot.phrase(each.row), share=each.share) for each in reason.phrases],
            other_share=reason.others,
            others=[PassageShare(share=each.share, **self._named(each.row).model_dump()) for each in reason.passages],
            path=self._path(reason.way) if reason.way else None,
        )

    def _path(self, way: Way) -> Path:
        return Path(share=way.share, steps=[self._step(step) for step in way.steps])

    def _step(self, step: Step) -> PathStep:
        named = self._named(step.row) if step.is_passage else None
        edge = step.edge
        return PathStep(
            kind="passage" if named else "phrase",
            text=named.title if named else self._snapshot.phrase(step.row),
            id=named.id if named else None,
            edge=edge.kind if edge else None,
            weight=edge.weight if edge else None,
            triples=[self._vouched(each) for each in edge.triples[:MOST_TRIPLES]] if edge else [],
        )

    def _vouched(self, vouched: Vouched) -> VouchedTriple:
        subject, predicate, object_ = vouched.triple
        passages = [self._named(row) for row in vouched.passages[:MOST_VOUCHING]]
        return VouchedTriple(subject=subject, predicate=predicate, object=object_, passages=passages)

    def _named(self, row: int) -> NamedPassage:
        passage = self._snapshot.passage(row)
        uris = self._naming.users(passage.id)
        document = self._naming.document(uris[0]) if uris else None
        title = passage.title or (document.title if document else "")
        return NamedPassage(id=passage.id, title=title, document=uris[0] if uris else "")
