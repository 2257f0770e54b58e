"""HippoRAG 2 with start weights that do not depend on the memory's size, and with starts at the names and words of the query.

In HippoRAG 2, the sum of min-max-scaled cosines grows with the number of passages, so linked phrases count less in a larger
memory: with 1,890 passages, they have an eighth of the reset probability. This mode converts similarities to standard
deviations and applies a softmax, separately for passages and for triples. Passages and phrases each have a fixed share of the
reset. The embedding of a whole question represents mainly one of its subjects, and rare words hardly at all. So the walk also
starts at phrases that the query names, at passages whose title it contains or whose rare words it shares, and at passages that
these lead to. Of many copies of one text, only one takes part (`memory.retrieval.near_duplicates`). After the walk, passages
that name very many things lose score (`memory.retrieval.pagerank.walk`), and links lead to other documents.
`docs/explanation/retrieval.md` describes the mode; `docs/decisions/` describes rejected variants.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from memory.phrase_normalisation import normalise_phrase
from memory.retrieval.followed_links import fewer_passages, follow_links
from memory.retrieval.linking.phrases import heaviest_first, link_known_entities, named_entities, specificity
from memory.retrieval.linking.query_titles import NamedTitle, named_titles, title_phrases
from memory.retrieval.linking.triples import ComparedTriples, filter_triples, nearest_triples
from memory.retrieval.mode_result import Ranking, dense_ranking
from memory.retrieval.near_duplicates import leave_out_duplicates
from memory.retrieval.pagerank.scoring import rank_by_pagerank, walked_graph
from memory.retrieval.passage_starts import heaviest_starts, next_passages, passage_starts
from memory.retrieval.passage_weights import PassageWeights
from memory.retrieval.query_context import QueryContext
from memory.retrieval.score_scaling import softmax
from memory.types import LinkedTriple, Seed
from store.index.graph.edge_entries import EdgeWeights

OCCURRENCE_WEIGHTS = EdgeWeights(relation=2.0, mention=2.0, synonym=2.0, occurrence=1.0)
"""A context edge has the weight of the passage's statements and mention edges that contain the phrase, as in HippoRAG 1."""


def fused(context: QueryContext) -> Ranking:
    snapshot, settings = context.snapshot, context.settings
    if not snapshot.living_passages:
        return dense_ranking(context)
    leaders: Mapping[int, int] = {}
    if settings.passage_nodes:
        context, leaders = leave_out_duplicates(context)
    compared = ComparedTriples(context)
    scale = compared.standard_score()
    triples = filter_triples(context, nearest_triples(context, compared, scale))
    with context.stage("names"):
        titles = named_titles(context)
    entities = named_entities(context, by_model=False)
    with context.stage("names"):
        named = link_known_entities(context, _names(context, titles, entities))
    kept = [triple for triple in triples if triple.kept]
    name_share = settings.name_share if kept else 1.0
    if not settings.passage_nodes:
        seeds = _merge_seeds(_triple_seeds(context, kept), named, name_share)
        return rank_by_pagerank(context, seeds, None, triples=triples)
    starts = passage_starts(context, titles)
    heaviest = heaviest_starts(context, starts)
    stated = snapshot.incidence.entries(np.array(list(heaviest), np.int64))[:2]
    linked = _triple_seeds(context, kept, None if context.recognition else set(stated[1].tolist()))
    seeds = _merge_seeds(linked, named, name_share)
    with context.stage("graph"):
        graph = walked_graph(context, OCCURRENCE_WEIGHTS)
    with context.stage("hop"):
        hop = next_passages(context, heaviest, stated, graph, compared, scale)
    # Cosines select the triples, so the phrases' share is multiplied by the share of the query that the encoder knows.
    known = min(sum(seed.weight for seed in seeds), 1.0) * context.known_share
    share = 1.0 - (1.0 - settings.passage_share) * known
    moved_share = settings.hop_share * hop.total
    passage_reset = PassageWeights.sum_of((share * settings.hop_share, hop), (share * (1.0 - moved_share), starts))
    seeds = _scale_seeds(seeds, 1 - share)
    ranking = rank_by_pagerank(context, seeds, passage_reset, OCCURRENCE_WEIGHTS, triples, leaders)
    ranking = follow_links(context, ranking)
    # If links are followed, the limit per document is reduced by one to leave room for the linked documents.
    per_document = fewer_passages(settings.document_passages) if ranking.links else settings.document_passages
    ranking = replace(ranking, document_passages=per_document)
    if seeds or ranking.note:
        return ranking
    return replace(ranking, note="no triple was kept and no name is known: the walk starts from passages alone")


def _names(context: QueryContext, titles: Sequence[NamedTitle], names: Sequence[str]) -> list[str]:
    """Returns the phrases that the query names: the titles of its titled passages, and the `names` that are not part of a
    title."""
    snapshot = context.snapshot
    titled = [
        phrase
        for title in titles
        for phrase in (
            [title.phrase]
            if title.of_document
            else [each for row in title.passages for each in title_phrases(snapshot.passage_title(row))]
        )
    ]
    within = "|".join(f" {title.phrase} " for title in titles)
    others = [name for name in names if f" {normalise_phrase(name)} " not in within]
    return [*titled, *others]


def _triple_seeds(
    context: QueryContext, triples: Sequence[LinkedTriple], stated: Collection[int] | None = None
) -> list[Seed]:
    """Returns the phrases of the triples as seeds; the weights sum to at most 1.

    The two phrases of a triple divide its softmax weight by node specificity. `stated`: rows of the triples that the heaviest
    starts state. Other triples give no seeds, and their weight is dropped: except in encyclopedia articles, most of the triples
    nearest to a question are about something else. Without `stated`, all triples give seeds.
    """
    snapshot = context.snapshot
    if not triples:
        return []
    weights = softmax(np.array([triple.score for triple in triples]), context.temperature)
    seeds = []
    for triple, weight in zip(triples, weights, strict=True):
        if stated is None or triple.row in stated:
            ends = {int(end): specificity(context, int(end)) for end in snapshot.triple_ends[triple.row]}
            total = sum(ends.values())
            seeds += [Seed(row, snapshot.phrase(row), float(weight) * each / total) for row, each in ends.items()]
    return seeds


def _merge_seeds(linked: Sequence[Seed], named: Sequence[Seed], name_share: float) -> list[Seed]:
    """Returns one seed per phrase. The weights of `named` are scaled to sum to `name_share`; the weights of `linked` are
    multiplied by 1 - `name_share`.

    If `named` is empty, the weights of `linked` do not change.
    """
    share = name_share if named else 0.0
    sums: dict[int, Seed] = {}
    rest = sum(seed.weight for seed in linked) * (1.0 - share)
    for seed in [*_scale_seeds(linked, rest), *_scale_seeds(named, share)]:
        before = sums[seed.row].weight if seed.row in sums else 0.0
        sums[seed.row] = replace(seed, weight=before + seed.weight)
    return heaviest_first([seed for seed in sums.values() if seed.weight > 0])


def _scale_seeds(seeds: Sequence[Seed], total: float) -> list[Seed]:
    """Scales the seeds' weights to the sum `total`."""
    before = sum(seed.weight for seed in seeds)
    return [replace(seed, weight=seed.weight * total / before) for seed in seeds] if before and total else []
