"""Compares modes on one set of questions: recall on the set and on each half, and the difference from the default mode.

Recall is defined as in `hippoctl eval`: the share of a question's gold passages or documents among the first k.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.support.questions.sets import Question
from bench.support.tables import table
from cli.evaluation.questions import EvalQuestion, GoldLocator
from cli.evaluation.requests import LOOKED_AT
from cli.evaluation.scoring import recalls_at
from daemon.contract.query import QueryResponse, RankedPassage
from memory.retrieval.modes import DEFAULT_MODE, MODES
from tests.e2e.real_hippod import Daemon

KS = (2, 5, 10)
NO_WALK = {"passage_share": 1.0, "damping": 1e-4}
"""Settings that make `fused` neither start at phrases nor walk."""
FUSED_RANKS = 100
"""Number of passages of each mode in a rank fusion."""
RANK_OFFSET = 10
"""In a rank fusion, a passage's score is 1 / (`RANK_OFFSET` + its rank) (Cormack, Clarke and Büttcher, 2009)."""
VARIANTS_TRIED = 231
"""Number of variants of `fused` and of following links compared on the development questions: 67 of `../shared/peers.md`, 164
of links, neighbouring passages, limits of passages per document, mixtures of ranks, word weights, gates and rules of triples.
The more variants are compared, the larger the part of a gain that is chance."""


def ask(daemon: Daemon, text: str, mode: str, k: int = max(KS), scope: str = "", **settings: Any) -> QueryResponse:
    """Queries the daemon. `scope`: a folder of the drive; default: the whole memory."""
    body: dict[str, Any] = {"query": text, "mode": mode, "k": k, "settings": settings}
    if scope:
        body["scope"] = {"in": [str(daemon.drive / scope)]}
    return QueryResponse.model_validate(daemon.ask("POST", "/v1/query", json=body))


def locate(daemon: Daemon, questions: Sequence[EvalQuestion]) -> list[EvalQuestion]:
    """Returns the questions with the documents of their gold passages, found as by `hippoctl eval`."""
    locator = GoldLocator(lambda _question, text: ask(daemon, text, "bm25", LOOKED_AT).passages, daemon.documents)
    return [locator.locate(question) for question in questions]


def ask_both(daemon: Daemon, text: str, scope: str = "") -> list[RankedPassage]:
    """Returns the passages by reciprocal rank fusion of `bm25` and `dense`; ties are ordered by id."""
    scores: dict[str, float] = defaultdict(float)
    passages: dict[str, RankedPassage] = {}
    for mode in ("bm25", "dense"):
        for passage in ask(daemon, text, mode, FUSED_RANKS, scope).passages:
            scores[passage.id] += 1.0 / (RANK_OFFSET + passage.rank)
            passages[passage.id] = passage
    return [passages[id] for id in sorted(scores, key=lambda id: (-scores[id], id))][: max(KS)]


def _shares(
    questions: Sequence[Question], ranked: Callable[[Question], Sequence[RankedPassage]]
) -> NDArray[np.float64]:
    """Returns the share of each question's gold among the first 1 … max(KS) passages, shape (questions, max(KS))."""
    return np.array([recalls_at(range(1, max(KS) + 1), question, ranked(question)) for question in questions])


def _found(daemon: Daemon, questions: Sequence[Question], mode: str, **settings: Any) -> NDArray[np.float64]:
    return _shares(
        questions, lambda each: ask(daemon, each.text, mode, scope=getattr(each, "scope", ""), **settings).passages
    )


def recalls(daemon: Daemon, questions: Sequence[Question], mode: str, **settings: Any) -> NDArray[np.float64]:
    """Returns the recall of each question at each of KS, shape (questions, len(KS))."""
    return _found(daemon, questions, mode, **settings)[:, np.array(KS) - 1]


def compare_modes(daemon: Daemon, questions: Sequence[Question], results: dict[str, Any]) -> str:
    """Formats one row per mode, one for the default without a walk, and one for the rank fusion of `bm25` and `dense`.

    Columns: recall, questions with all gold, recall@5 of each half, and the default mode's recall@5 minus the row's.
    """
    found = {mode: _found(daemon, questions, mode) for mode in MODES}
    found["no walk"] = _found(daemon, questions, DEFAULT_MODE, **NO_WALK)
    found["plain hybrid"] = _shares(questions, lambda each: ask_both(daemon, each.text, getattr(each, "scope", "")))
    alone = np.array([question.gold == 1 for question in questions])
    half = len(questions) // 2
    rows = []
    for mode, shares in found.items():
        at_5 = shares[:, 4]
        more, halves = found[DEFAULT_MODE][:, 4] - at_5, [float(at_5[:half].mean()), float(at_5[half:].mean())]
        first = float(shares[alone, 0].mean()) if alone.any() else None
        recall = shares[:, np.array(KS) - 1].mean(axis=0)
        everything = {str(k): float((shares[:, k - 1] == 1.0).mean()) for k in (5, 8)}
        low, high = _interval(more)
        above = at_5 - found["hipporag2"][:, 4]
        results.setdefault("modes", {})[mode] = {
            "recall": dict(zip(map(str, KS), recall.round(4).tolist(), strict=True)),
            "all": everything,
            "first, of one gold": first,
            "recall@5 by halves": halves,
            f"recall@5 of {DEFAULT_MODE} above": {"mean": float(more.mean()), "90 %": [low, high]},
            "recall@5 above hipporag2": {"mean": float(above.mean()), "90 %": list(_interval(above))},
        }
        rows.append(
            (
                f"`{mode}`",
                *(f"{value:.4f}" for value in recall),
                *(f"{value:.2f}" for value in everything.values()),
                "" if first is None else f"{first:.2f}",
                " / ".join(f"{value:.3f}" for value in halves),
                "" if mode == DEFAULT_MODE else f"{more.mean():+.3f} [{low:+.3f}, {high:+.3f}]",
            )
        )
    head = (
        f"mode ({len(questions)} questions)",
        *(f"recall@{k}" for k in KS),
        "all@5",
        "all@8",
        "first, of one gold",
        "recall@5, halves",
        f"`{DEFAULT_MODE}` − it, recall@5",
    )
    return "\n\n".join(filter(None, [table(head, rows), _by_kind(questions, found, results)]))


def _by_kind(questions: Sequence[Question], found: dict[str, NDArray[np.float64]], results: dict[str, Any]) -> str:
    """Formats the share of questions with all gold among the first five, by kind of question, if there are kinds."""
    kinds = np.array([getattr(question, "kind", "") for question in questions])
    names = [name for name in dict.fromkeys(kinds.tolist()) if name]
    if not names:
        return ""
    results["all@5 by kind"] = {
        name: {kind: float((shares[kinds == kind, 4] == 1.0).mean()) for kind in names}
        for name, shares in found.items()
    }
    rows = [(f"`{name}`", *(f"{by[kind]:.2f}" for kind in names)) for name, by in results["all@5 by kind"].items()]
    return table(("all@5", *(f"{kind} ({int((kinds == kind).sum())})" for kind in names)), rows)


def _interval(differences: NDArray[np.float64]) -> tuple[float, float]:
    """Returns the 90 % bootstrap interval of a mean over questions."""
    random = np.random.default_rng(0)
    means = differences[random.integers(0, len(differences), (10_000, len(differences)))].mean(axis=1)
    low, high = np.quantile(means, [0.05, 0.95])
    return float(low), float(high)
