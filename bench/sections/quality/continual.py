"""Continual learning: recall, and F1 if there is a model, as a memory grows (HippoRAG 2, Figure 3).

The questions of each set (MuSiQue, HotpotQA, 2Wiki, NaturalQuestions) and their passages are drawn into four segments, with a
fixed seed. The daemon gets one segment after another. After each segment, the questions of the first segment are asked in
several modes. `HIPPOD_BENCH_SETS` selects sets (musique,hotpotqa,2wiki,nq); `HIPPOD_BENCH_LLM` (a base URL) and
`HIPPOD_BENCH_MODEL` name a model that answers.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.support.bulk_daemon import BULK_S, bulk_daemon, ctl
from bench.support.data import DATA, skipped
from bench.support.questions.draw import draw
from bench.support.tables import table
from cli.evaluation.gold import same_text
from cli.evaluation.question_formats import paragraphs_of
from tests.e2e.real_hippod import Daemon

SETS = tuple(os.environ.get("HIPPOD_BENCH_SETS", "musique,hotpotqa,2wiki,nq").split(","))
MODES = ("fused", "hipporag2", "dense", "bm25")
SEGMENTS = 4
K = 5


def run(results: dict[str, Any]) -> str:
    parts = []
    for name in SETS:
        if not (DATA / name).exists():
            parts.append(skipped(name, DATA / name))
            continue
        corpus = json.loads((DATA / name / "corpus.json").read_text("utf-8"))
        questions = json.loads((DATA / name / "questions.json").read_text("utf-8"))
        with (
            tempfile.TemporaryDirectory(prefix="hippod-continual-") as place,
            bulk_daemon(Path(place) / name, **_model()) as daemon,
        ):
            results[name] = rows = grow(daemon, corpus, questions)
        parts.append(f"{name}:\n\n{growth_table(rows)}")
    return "\n\n".join(parts)


def _model() -> dict[str, Any]:
    url, model = os.environ.get("HIPPOD_BENCH_LLM"), os.environ.get("HIPPOD_BENCH_MODEL")
    return {"llm": {"base_url": url, "model": model}} if url and model else {}


def grow(
    daemon: Daemon,
    corpus: Sequence[Mapping[str, Any]],
    questions: Sequence[dict[str, Any]],
    modes: Sequence[str] = MODES,
    count: int = SEGMENTS,
    answers: bool | None = None,
) -> list[dict[str, Any]]:
    """Returns a row for each segment and mode, with `segment`, `passages`, `mode`, `questions`, `recall`, and `f1` if `answers`
    is true. By default, `answers` is true if a model is configured."""
    gold = gold_documents(corpus, questions)
    segments = draw(gold, len(corpus), count)
    asked = daemon.home / "first_segment.json"
    asked.write_text(json.dumps([questions[at] for at in segments[0].questions]), "utf-8")
    with_answers = bool(_model()) if answers is None else answers
    rows = []
    for number, segment in enumerate(segments, 1):
        file = daemon.home / f"segment{number}.json"
        file.write_text(json.dumps([corpus[at] for at in segment.documents]), "utf-8")
        ctl(daemon, "add", file)
        passages = daemon.wait(BULK_S)["passages"]
        options = ["--answers", "--reason"] if with_answers else []
        found = ctl(daemon, "eval", asked, "--k", str(K), "--compare", ",".join(modes), *options)
        for mode in found["modes"]:
            row = {"segment": number, "passages": passages, "mode": mode["mode"], "questions": found["n"]}
            row["recall"] = mode["recall"][str(K)]
            rows.append(row | ({"f1": mode["answers"]["f1"]} if with_answers else {}))
    return rows


def gold_documents(
    corpus: Sequence[Mapping[str, Any]], questions: Sequence[dict[str, Any]]
) -> dict[int, frozenset[int]]:
    """Returns the gold documents of each question, as indices in `corpus`."""
    places = {same_text(f"{each['title']}\n{each['text']}"): at for at, each in enumerate(corpus)}
    return {
        at: frozenset(places[same_text(str(each))] for each in paragraphs_of(question))
        for at, question in enumerate(questions)
    }


def growth_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Formats one line per segment, with a column for each mode and measure."""
    measures = ["recall", *(["f1"] if "f1" in rows[0] else [])]
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    by = {(row["segment"], row["mode"]): row for row in rows}
    heads = [f"segment ({rows[0]['questions']} questions of the first)", "passages"]
    heads += [f"`{mode}` {'recall@5' if measure == 'recall' else 'F1'}" for measure in measures for mode in modes]
    lines = []
    for segment in dict.fromkeys(row["segment"] for row in rows):
        values = [f"{by[segment, mode][measure]:.4f}" for measure in measures for mode in modes]
        lines.append((segment, f"{by[segment, modes[0]]['passages']:,}", *values))
    return table(heads, lines)
