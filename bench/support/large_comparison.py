"""Applies the approximate computations of a large memory to a small one, and compares recall with exact computation."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.support.bulk_daemon import ENCODER
from bench.support.questions.mode_comparison import KS
from bench.support.questions.sets import Question
from bench.support.tables import table
from cli.evaluation.scoring import recalls_at
from memory.encoder import make_encoder
from memory.encoder.calibration import known_calibration
from memory.retrieval.modes import MODES
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.index.parallel import wait_for_background
from store.index.quantised.groups import search_group
from store.index.vectors.matrix import BLOCK_VECTORS
from store.store import Store
from store.types import SynonymRule

FIRST = 5
MOST_DIFFERENCE = 0.005
LIMITS = {
    "memory.retrieval.pagerank.walk.PUSH_MIN_NODES": 0,
    "memory.retrieval.linking.compared_rows.CODED_MIN_ROWS": 0,
    "memory.retrieval.linking.compared_rows.GROUPED_MIN_ROWS": 0,
    "store.index.quantised.groups.MIN_GROUP_ROWS": BLOCK_VECTORS,
    "store.index.quantised.sample.SAMPLE_MIN_ROWS": BLOCK_VECTORS // 2,
}
"""Values of constants that make queries treat a small memory like a large memory. A group has at least `BLOCK_VECTORS` rows."""


def compare_as_large(folder: Path, name: str, questions: Sequence[Question], results: dict[str, Any]) -> str:
    """Queries the store in `folder` as if it were large, and exactly; returns a Markdown table. The store must not be open.

    `name` is the name of the question set. A mode whose recall differs by more than `MOST_DIFFERENCE` is added to
    `results["violations"]`.
    """
    encoder = make_encoder("sentence-transformers", ENCODER, 64, "cpu")
    rows = []
    calibration = known_calibration(encoder.identity)
    assert calibration is not None
    rule = SynonymRule(calibration.synonym_threshold)
    with Store(folder, encoder.identity, rule) as store, ExitStack() as patches:
        for limit, value in LIMITS.items():
            patches.enter_context(patch(limit, value))
        search = patches.enter_context(patch("memory.retrieval.linking.compared_rows.search_group", wraps=search_group))
        documents = store.document_snapshot()
        # The first query starts to make the groups.
        retrieve(documents.snapshot, encoder, questions[0].text, "hipporag2", max(KS), RetrievalSettings())
        wait_for_background()
        for mode in (name for name, each in MODES.items() if "exact" in each.settings):
            recalls: dict[bool, list[list[float]]] = {False: [], True: []}
            same = 0
            for question in questions:
                first = []
                for exact, found in recalls.items():
                    settings = RetrievalSettings(exact=exact)
                    hits = retrieve(documents.snapshot, encoder, question.text, mode, max(KS), settings).hits
                    ranked: list[Any] = []
                    for hit in hits:
                        uri, *others = sorted(documents.holders[hit.row])
                        ranked.append(SimpleNamespace(title=hit.title, text=hit.text, document=uri, also_in=others))
                    found.append(recalls_at(KS, question, ranked))
                    first.append({hit.id for hit in hits[:FIRST]})
                same += first[0] == first[1]
            means = {exact: np.mean(found, axis=0) for exact, found in recalls.items()}
            results.setdefault(name, {}).setdefault("as_large", {})[mode] = {
                "as_large": means[False].tolist(),
                "exact": means[True].tolist(),
                "same_first": same,
                "of": len(questions),
            }
            if np.abs(means[False] - means[True]).max() > MOST_DIFFERENCE:
                unlike = f"{name}, {mode}: recall as if the memory were large is not that of the exact answer"
                results.setdefault("violations", []).append(unlike)
            shown = (" / ".join(f"{value:.4f}" for value in means[exact]) for exact in (False, True))
            rows.append((f"`{mode}`", *shown, f"{same} of {len(questions)}"))
        if documents.snapshot.n_triples >= BLOCK_VECTORS and not search.called:
            results.setdefault("violations", []).append(f"{name}: no query searched the four-bit codes")
    head = f"recall@{', @'.join(map(str, KS))}, and questions with the same first {FIRST} passages"
    return f"As if it were large, and with `exact = true`: {head}:\n\n{table(('mode', 'as if large', 'exact', 'same'), rows)}"
