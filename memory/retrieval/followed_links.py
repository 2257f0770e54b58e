"""Follows the links of authors from the best passages to passages of other documents.

A question often needs a page that it does not name: for example, the first page says who owns a service and links to the
owner's page. Each of the best passages gives part of its value to the passages of the documents that it links to. The part
depends on their similarity to the question and to the linking passage. A passage has the larger of its own value and the
received value. A linked passage stays below the first documents; otherwise, the targets of a page with many links, as in a
manual, would displace that page. Links are followed forwards only.

Values are standard deviations above the mean cosine. The i-th passage of the walk's ranking gets the value of the passage with
the i-th largest cosine. If no link is followed, the ranking does not change.

`limit_documents` limits the number of passages per document in the first places, so that other documents appear too.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from memory.explain.explanation import FollowedLink
from memory.retrieval.mode_result import Ranking
from memory.retrieval.passage_weights import Floats
from memory.retrieval.query_context import BEST_PASSAGES, QueryContext
from memory.retrieval.score_scaling import StandardScore
from memory.retrieval.top_k import RANKING_DECIMALS, cosines, top_k
from store.snapshot import DocumentLookup, Snapshot
from store.types import Link

SOURCES = 10
"""Number of best passages whose links are followed."""
SOURCE_SHARE = 0.5
"""Share of the linking passage's value in the value of a linked passage; the remaining share is the linked passage's
similarity."""
LINK_FACTOR = 1.2
"""Factor of the weighted sum of value and similarity."""
FIRST_DOCUMENTS = 3
"""Number of best documents that linked passages cannot displace."""
SOURCE_IN_SIMILARITY = 0.5
"""Weight of the linking passage's vector. Linked passages are compared with the sum of this vector and the question's
vector."""
MAX_LINKS = 200
"""Maximum number of links followed per passage; the first ones are used."""
MAX_DOCUMENTS = 100
"""If thousands of documents contain one passage, such as a notice, only this number of them is searched for links, in order of
URI."""
MAX_TARGETS = 1_000
"""Maximum number of passages that the links of one passage lead to, in the order of the links and of the linked documents."""

LIMITED_PLACES = 5
"""Number of first places in which the number of passages per document is limited."""


@dataclass(frozen=True, slots=True)
class _RankedPassages:
    """The best passages in order, and their values, descending, shape (len(rows),)."""

    rows: list[int]
    values: Floats


def follow_links(context: QueryContext, ranking: Ranking) -> Ranking:
    """Returns the ranking with raised scores of linked passages; the ranking unchanged if no link leads to a passage."""
    documents = context.documents
    if not context.settings.links or documents is None or ranking.is_dense or context.passages_by_words:
        return ranking
    with context.stage("links"):
        ranked = _ranked(context, ranking)
        document = first_documents(context.snapshot, documents)
        reached: dict[int, tuple[float, FollowedLink]] = {}
        for row, value in _sources(context, document, ranked):
            targets = _targets(context, documents, row)
            values = _values_of_targets(context, row, value, list(targets))
            for target, target_value in zip(targets, values, strict=True):
                if target not in reached or target_value > reached[target][0]:
                    reached[target] = target_value, targets[target]
        return _with_raised_scores(ranking, ranked, reached, limit_documents(ranked.rows, document, 1, FIRST_DOCUMENTS))


def _ranked(context: QueryContext, ranking: Ranking) -> _RankedPassages:
    snapshot = context.snapshot
    rows = top_k(ranking.scores, BEST_PASSAGES, context.passage_mask, snapshot.passage_id, RANKING_DECIMALS)
    nearest = context.cosine_scale(-np.sort(-context.nearest_cosines[1]))
    return _RankedPassages(rows[: len(nearest)], nearest[: len(rows)])


def _sources(context: QueryContext, document: Callable[[int], str], ranked: _RankedPassages) -> list[tuple[int, float]]:
    """Returns the best passages and their values. Per document, at most the number of passages that the first places allow."""
    values = dict(zip(ranked.rows, ranked.values.tolist(), strict=True))
    per_document = fewer_passages(context.settings.document_passages)
    sources = limit_documents(ranked.rows, document, per_document, SOURCES)[:SOURCES]
    return [(row, values[row]) for row in sources]


def _targets(context: QueryContext, documents: DocumentLookup, row: int) -> dict[int, FollowedLink]:
    """Returns the passages that the links of a passage lead to, each with the first link that leads to it."""
    snapshot, compared, passage = context.snapshot, context.passage_mask, context.snapshot.passage_id(row)
    found: dict[int, FollowedLink] = {}
    for uri, link in islice(_links(documents, passage), MAX_LINKS):
        target = snapshot.linked_document(link.target, uri)
        if target is not None and target != uri and (document := documents.document(target)) is not None:
            for ref in document.passages:
                linked = snapshot.passage_row(ref.passage)
                if linked is not None and linked != row and linked not in found and compared[linked]:
                    found[linked] = FollowedLink(row, uri, target, link.heading, link.text)
                    if len(found) >= MAX_TARGETS:
                        return found
    return found


def _links(documents: DocumentLookup, passage: str) -> Iterator[tuple[str, Link]]:
    """Yields the links in a passage, each with the document that contains it."""
    for uri in documents.documents_with_passage(passage)[:MAX_DOCUMENTS]:
        document = documents.document(uri)
        for ref in document.passages if document is not None else ():
            if ref.passage == passage:
                yield from ((uri, link) for link in ref.links)


def _values_of_targets(context: QueryContext, row: int, value: float, targets: Sequence[int]) -> list[float]:
    """Returns the values that the linked passages `targets` receive from the passage `row`, whose value is `value`."""
    if not targets:
        return []
    vectors = context.snapshot.passage_vectors
    both = context.vector + np.float32(SOURCE_IN_SIMILARITY) * vectors.rows([row])[0]
    sums = vectors.sampled_sums(both, context.passage_mask, context.snapshot.living_passages)
    scale = StandardScore.from_sums(sums.count, sums.products, sums.squares)
    near = scale(cosines(vectors, both, np.array(targets, np.int64)))
    values: list[float] = (LINK_FACTOR * (SOURCE_SHARE * value + (1.0 - SOURCE_SHARE) * near)).tolist()
    return values


def _with_raised_scores(
    ranking: Ranking, ranked: _RankedPassages, reached: Mapping[int, tuple[float, FollowedLink]], order: Sequence[int]
) -> Ranking:
    """Raises the score of each linked passage to its received value, if that is larger than its own value.

    `order` begins with the best passage of each of the first `FIRST_DOCUMENTS` documents. Passages that would precede the last
    of these passages are placed after it.
    """
    values = ranked.values[::-1]
    rising = ranking.scores[np.array(ranked.rows[::-1], np.int64)].astype(np.float64)
    own = dict(zip(ranked.rows, ranked.values.tolist(), strict=True))
    first = order[:FIRST_DOCUMENTS]
    raised = {
        row: target_value
        for row, (target_value, _) in reached.items()
        if row not in first and target_value > max(own.get(row, -np.inf), values[0])
    }
    if not raised:
        return ranking
    last = max(ranked.rows.index(row) for row in first)
    ceiling, floor = ranked.values[last], ranked.values[min(last + 1, len(own) - 1)]
    beyond = sorted((row for row, target_value in raised.items() if target_value >= ceiling), key=raised.__getitem__)
    raised |= {row: floor + (ceiling - floor) * (at + 1) / (len(beyond) + 1) for at, row in enumerate(beyond)}
    scores = ranking.scores.astype(np.float64)
    for row, target_value in raised.items():
        scores[row] = max(float(np.interp(target_value, values, rising)), scores[row])
    return replace(ranking, scores=scores, links={row: reached[row][1] for row in raised})


def limit_documents(
    rows: Sequence[int], document: Callable[[int], str], per_document: int, places: int = LIMITED_PLACES
) -> list[int]:
    """Reorders `rows` so that the first `places` contain at most `per_document` passages of each `document`.

    Excess passages follow after these places. Excess passages fill the first places only if there are no other passages.
    """
    first: list[int] = []
    pushed_back: list[int] = []
    counts: Counter[str] = Counter()
    for at, row in enumerate(rows):
        if len(first) == places:
            return [*first, *pushed_back, *rows[at:]]
        of = document(row)
        counts[of] += 1
        (first if counts[of] <= per_document else pushed_back).append(row)
    return [*first, *pushed_back]


def first_documents(snapshot: Snapshot, documents: DocumentLookup) -> Callable[[int], str]:
    """Returns a function from a row to the URI of the first document with that passage; "" if a commit has just removed all its
    documents."""

    def document(row: int) -> str:
        uris = documents.documents_with_passage(snapshot.passage_id(row))
        return uris[0] if uris else ""

    return document


def fewer_passages(per_document: int) -> int:
    """Returns the limit per document if links lead to other documents. `per_document`: the limit without links."""
    return max(per_document - 1, 1)
