"""One query, from text to ranked passages, on one snapshot."""

import numpy as np
from numpy.typing import NDArray

from memory.asking import Asked, Ranking, Recognition, RetrievalSettings
from memory.explain import explain
from memory.modes import MODES
from memory.ranking import DECIMALS, best, nearest
from memory.reasons import Reason
from memory.types import Encoder, Hit, Retrieved
from store.snapshot import Snapshot

__all__ = ["MODES", "Recognition", "RetrievalSettings", "retrieve"]


def retrieve(
    snapshot: Snapshot,
    encoder: Encoder,
    query: str,
    mode: str,
    k: int,
    settings: RetrievalSettings,
    recognition: Recognition | None = None,
    *,
    explained: bool = False,
) -> Retrieved:
    """The `k` best passages for `query` in `mode`, one of `MODES`.

    Every mode answers every query, an empty memory with nothing. `explained` gives reasons, at the cost of some more walks.
    Raises `ValueError` for another mode.
    """
    if mode not in MODES:
        raise ValueError(f'"{mode}" is no way to retrieve; there are {", ".join(MODES)}.')
    asked = Asked(snapshot, encoder, query, settings, recognition, k)
    ranking = MODES[mode](asked)
    with asked.stage("rank"):
        found = hits(asked, ranking, k)
    reasons: tuple[Reason, ...] = ()
    if explained:
        with asked.stage("explain"):
            reasons = explain(asked, ranking, [hit.row for hit in found])
    return Retrieved(
        query,
        mode,
        snapshot.commit,
        found,
        ranking.triples,
        ranking.seeds,
        ranking.note,
        stages_ms=asked.stages_ms,
        reasons=reasons,
    )


def hits(asked: Asked, ranking: Ranking, k: int) -> tuple[Hit, ...]:
    """The `k` best living passages of a ranking; equal scores by passage id."""
    snapshot = asked.snapshot
    among: NDArray[np.bool_] = snapshot.passage_alive
    if ranking.among is not None:
        among = among & ranking.among

    def id_of(row: int) -> str:
        return snapshot.passage(row).id

    if ranking.is_dense:
        rows, scores = nearest(snapshot.passage_vectors, asked.vector, ranking.scores, k, among, id_of)
    else:
        rounded = np.round(ranking.scores, DECIMALS)
        rows = best(rounded, k, among, id_of)
        scores = ranking.scores[rows].astype(np.float64)
    found = [(row, snapshot.passage(row), float(score)) for row, score in zip(rows, scores, strict=True)]
    return tuple(Hit(row, p.id, p.title, p.text, score) for row, p, score in found)
