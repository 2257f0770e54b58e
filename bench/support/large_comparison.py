"""Applies the approximate computations of a large memory to a small one, and compares recall with exact computation."""

from collections.abc import Sequence
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
from store.store import Store
from store.types import SynonymRule

FIRST = 5
MOST_DIFFERENCE = 0.005


def compare_as_large(folder: Path, name: str, questions: Sequence[Question], results: dict[str, Any]) -> str:
    """Queries the store in `folder` as if it were large, and exactly; returns a Markdown table. The store must not be open.

    `name` is the name of the question set. A mode whose recall differs by more than `MOST_DIFFERENCE` is added to
    `results["violations"]`.
    """
    encoder = make_encoder("sentence-transformers", ENCODER, 64, "cpu")
    rows = []
    small = (
        patch("memory.retrieval.pagerank.walk.PUSH_MIN_NODES", 0),
        patch("memory.retrieval.linking.compared_rows.CODED_MIN_ROWS", 0),
        patch("memory.retrieval.linking.compared_rows.GROUPED_MIN_ROWS", 0),
    )
    calibration = known_calibration(encoder.identity)
    assert calibration is not None
    rule = SynonymRule(calibration.synonym_threshold)
    with Store(folder, encoder.identity, rule) as store, small[0], small[1], small[2]:
        documents = store.document_snapshot()
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
    head = f"recall@{', @'.join(map(str, KS))}, and questions with the same first {FIRST} passages"
    return f"As if it were large, and with `exact = true`: {head}:\n\n{table(('mode', 'as if large', 'exact', 'same'), rows)}"
