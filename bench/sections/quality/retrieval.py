"""Quality and speed of the answers: every mode on every set of questions, ablations, growth.

The sets are MuSiQue with recorded triples and with the rules' triples, HotpotQA, 2Wiki, the example drive, manuals in several
languages, a company's handbook, a vault of help pages, and LoCoMo's conversations. The `build` scripts of ../shared/data create
the folders `drive` of manuals, handbook and vault; `HIPPOD_BENCH_MANUALS`, `HIPPOD_BENCH_HANDBOOK` and `HIPPOD_BENCH_VAULT`
name other folders. `HIPPOD_BENCH_LOCOMO` is the file locomo10.json of github.com/snap-research/LoCoMo. A missing set is
omitted. `HIPPOD_BENCH_ENCODER` selects a packaged encoder (all-MiniLM-L6-v2). Times are measured with one query at a time:
`took` as the daemon reports it, `socket` as the client measures it. Each question is new to the daemon.
"""

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import igraph
import numpy as np
from numpy.typing import NDArray

from bench.support.bulk_daemon import BULK_S, ENCODER, bulk_daemon, ctl
from bench.support.data import DATA, DRIVE, MANUALS, MUSIQUE, ROOT, skipped
from bench.support.large_comparison import compare_as_large
from bench.support.large_graph import large_snapshot
from bench.support.questions.drives import handbook_questions, place, vault_questions, write_conversations
from bench.support.questions.mode_comparison import (
    KS,
    VARIANTS_TRIED,
    ask,
    compare_modes,
    locate,
    recalls,
)
from bench.support.questions.sets import manual_questions
from bench.support.tables import percentiles, table
from cli.evaluation.questions import EvalQuestion, read_questions
from memory.encoder import make_encoder
from memory.retrieval.modes import MODES
from memory.retrieval.modes.fused import OCCURRENCE_WEIGHTS
from memory.retrieval.query_context import QueryContext
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from tests.e2e.real_hippod import Daemon

MANUAL_QUESTIONS = [
    path
    for path in (
        DATA / "manuals" / "questions.json",
        ROOT / "bench/support/questions/manual_questions.json",
        ROOT / "bench/support/questions/manual_questions_en.json",
        ROOT / "bench/support/questions/manual_tasks.json",
    )
    if path.exists()
]
HELD_OUT_QUESTIONS = [ROOT / "bench/support/questions/manual_tasks_held_out.json"]
"""Questions like those of `manual_tasks.json`, but not used to choose variants."""
WEIGHTS = (0.01, 0.05, 0.1, 0.3, 0.5)
"""Weights of passages in the reset, as in the HippoRAG 2 paper's Table 5."""


def run(results: dict[str, Any]) -> str:
    folder = Path(tempfile.mkdtemp(prefix="hippod-bench-"))
    try:
        parts = []
        if MUSIQUE.exists():
            parts += [_recorded(folder / "recorded", results), _rules(folder / "rules", results)]
        else:
            parts.append(skipped("MuSiQue", MUSIQUE))
        parts += [_corpus(folder / name, name, results) for name in ("hotpotqa", "2wiki") if (DATA / name).exists()]
        parts.append(_drive(folder / "drive", results))
        languages = sorted(path.name for path in MANUALS.iterdir()) if MANUALS.exists() else []
        if languages:
            parts.append(_manuals(folder / "manuals", languages, results))
        parts += [_handbook(folder / "handbook", results), _vault(folder / "vault", results), _locomo(folder, results)]
        if MUSIQUE.exists():
            parts.append(_large(results))
        results["variants tried"] = VARIANTS_TRIED
        parts.append(f"{VARIANTS_TRIED} variants of `fused` were compared on the development questions of these sets.")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return "\n\n".join(parts)


# Sets of questions.


def _recorded(home: Path, results: dict[str, Any]) -> str:
    """Measures MuSiQue with the triples that GPT-3.5 found."""
    with bulk_daemon(home) as daemon:
        began = time.perf_counter()
        imported = ctl(daemon, "import", MUSIQUE / "openie.json")
        daemon.wait(BULK_S)
        took = time.perf_counter() - began
        status = daemon.status()
        questions = locate(daemon, read_questions(MUSIQUE / "questions.json"))
        latency = _latency(daemon, questions)
        modes = compare_modes(daemon, questions, results.setdefault("recorded", {}))
        ablations = _ablations(daemon, questions, results["recorded"])
        grown = [_grown(daemon, mode, results["recorded"]) for mode in ("fused", "hipporag2")]
    large = compare_as_large(home / "store", "recorded", questions, results)
    results["recorded"] |= {"import_s": took, "import": imported, "status": status, "latency": latency}
    sizes = ", ".join(f"{status[key]:,} {key}" for key in ("passages", "phrases", "triples"))
    edges = ", ".join(f"{count:,} {kind}" for kind, count in status["edges"].items())
    return "\n\n".join(
        [
            f"MuSiQue, recorded triples: {sizes}; edges: {edges}. `import` took {took:.1f} s "
            f"({imported['skipped']} malformed triples skipped).",
            modes,
            large,
            _latency_table(latency),
            ablations,
            *grown,
        ]
    )


def _rules(home: Path, results: dict[str, Any]) -> str:
    """Measures MuSiQue with the triples of the rules."""
    with bulk_daemon(home) as daemon:
        began = time.perf_counter()
        ctl(daemon, "add", MUSIQUE / "corpus.json")
        daemon.wait(BULK_S)
        took = time.perf_counter() - began
        status = daemon.status()
        questions = locate(daemon, read_questions(MUSIQUE / "questions.json"))
        modes = compare_modes(daemon, questions, results.setdefault("rules", {}))
    results["rules"] |= {"add_s": took, "status": status}
    modes += "\n\n" + compare_as_large(home / "store", "rules", questions, results)
    return (
        f"MuSiQue, triples of the rules (no model): {status['phrases']:,} phrases, {status['triples']:,} triples, "
        f"{took:.1f} s from `add` to the last commit.\n\n{modes}"
    )


def _corpus(home: Path, name: str, results: dict[str, Any]) -> str:
    """Measures a corpus of `../shared/data` with the triples of the rules."""
    with bulk_daemon(home) as daemon:
        ctl(daemon, "add", DATA / name / "corpus.json")
        daemon.wait(BULK_S)
        passages = daemon.status()["passages"]
        questions = locate(daemon, read_questions(DATA / name / "questions.json"))
        modes = compare_modes(daemon, questions, results.setdefault(name, {}))
    modes += "\n\n" + compare_as_large(home / "store", name, questions, results)
    return f"{name}, {passages:,} passages, triples of the rules:\n\n{modes}"


def _manuals(home: Path, languages: Sequence[str], results: dict[str, Any]) -> str:
    """Measures the manuals of all languages in one drive, with each language's questions."""
    daemon = bulk_daemon(home)
    shutil.copytree(MANUALS, daemon.drive, dirs_exist_ok=True)
    parts = []
    with daemon:
        daemon.wait(BULK_S)
        parts.append(
            f"Manuals in {', '.join(languages)}, {daemon.status()['passages']:,} passages, triples of the rules:"
        )
        for kind, paths in (("manuals", MANUAL_QUESTIONS), ("manuals, held out", HELD_OUT_QUESTIONS)):
            for language in languages:
                questions = [each for path in paths for each in manual_questions(path, language)]
                if questions:
                    modes = compare_modes(daemon, questions, results.setdefault(f"{kind}, {language}", {}))
                    parts += [f"{kind}, {language}:", modes]
    return "\n\n".join(parts)


def _drive(home: Path, results: dict[str, Any]) -> str:
    """Measures the example drive as `make run` follows it."""
    daemon = bulk_daemon(home)
    shutil.copytree(DRIVE, daemon.drive, dirs_exist_ok=True)
    with daemon:
        daemon.wait(BULK_S)
        questions = read_questions(ROOT / "examples" / "questions.json")
        modes = compare_modes(daemon, questions, results.setdefault("drive", {}))
    modes += "\n\n" + compare_as_large(home / "store", "drive", questions, results)
    return f"The example drive and its questions, triples of the rules:\n\n{modes}"


def _handbook(home: Path, results: dict[str, Any]) -> str:
    """Measures a company's handbook, with questions about one page and about several pages."""
    source, questions_file = place("handbook", DATA / "handbook" / "drive"), DATA / "handbook" / "questions.json"
    if not source.is_dir() or not questions_file.exists():
        return skipped("The handbook", source, questions_file, variable="HIPPOD_BENCH_HANDBOOK")
    daemon = bulk_daemon(home)
    shutil.copytree(source, daemon.drive, dirs_exist_ok=True)
    with daemon:
        daemon.wait(BULK_S)
        modes = compare_modes(daemon, handbook_questions(questions_file), results.setdefault("handbook", {}))
    return f"A company's handbook, triples of the rules:\n\n{modes}"


def _vault(home: Path, results: dict[str, Any]) -> str:
    """Measures help pages in several languages in one drive; each language's questions are asked of its own pages."""
    source, questions_file = place("vault", DATA / "vault" / "drive"), DATA / "vault" / "questions.json"
    if not source.is_dir() or not questions_file.exists():
        return skipped("The vault", source, questions_file, variable="HIPPOD_BENCH_VAULT")
    daemon = bulk_daemon(home)
    shutil.copytree(source, daemon.drive, dirs_exist_ok=True)
    parts = ["A vault of help pages, each language in scope alone, triples of the rules:"]
    with daemon:
        daemon.wait(BULK_S)
        for language in sorted(path.name for path in source.iterdir() if path.is_dir()):
            if questions := vault_questions(questions_file, language):
                modes = compare_modes(daemon, questions, results.setdefault(f"vault, {language}", {}))
                parts += [f"vault, {language}:", modes]
    return "\n\n".join(parts)


def _locomo(folder: Path, results: dict[str, Any]) -> str:
    """Measures conversations, one document per session; each conversation's questions are asked of its own sessions."""
    source = place("locomo", DATA / "locomo" / "locomo10.json")
    if not source.exists():
        return skipped("LoCoMo", source, variable="HIPPOD_BENCH_LOCOMO")
    daemon = bulk_daemon(folder / "locomo")
    questions = write_conversations(source, daemon.drive)
    with daemon:
        daemon.wait(BULK_S)
        modes = compare_modes(daemon, questions, results.setdefault("locomo", {}))
    return f"LoCoMo's first conversations, each in scope alone, triples of the rules:\n\n{modes}"


def _ablations(daemon: Daemon, questions: list[EvalQuestion], results: dict[str, Any]) -> str:
    """Measures the papers' ablations: HippoRAG 2's Table 4 (without passage nodes), Table 5 (weight of passages) and phrase
    weight; HippoRAG 1's Table 5."""
    settings: list[tuple[str, str, dict[str, Any]]] = [
        (mode, "passage_nodes = false", {"passage_nodes": False}) for mode in ("hipporag2", "fused")
    ]
    settings += [("hipporag2", f"passage_weight = {weight}", {"passage_weight": weight}) for weight in WEIGHTS]
    settings += [
        (mode, "node_specificity = false", {"node_specificity": False}) for mode in ("hipporag2", "hipporag", "fused")
    ]
    settings += [
        (mode, "synonym_edges = false", {"synonym_edges": False}) for mode in ("hipporag2", "hipporag", "fused")
    ]
    settings += [("hipporag", f"walk = {walk}", {"walk": walk}) for walk in ("pagerank", "neighbours", "none")]
    rows = []
    for mode, name, chosen in settings:
        recall = recalls(daemon, questions, mode, **chosen).mean(axis=0)
        results.setdefault("ablations", {})[f"{mode}, {name}"] = recall.round(4).tolist()
        rows.append((f"`{mode}`, `{name}`", *(f"{value:.4f}" for value in recall)))
    return table(("ablation", *(f"recall@{k}" for k in KS)), rows)


def _grown(daemon: Daemon, mode: str, results: dict[str, Any]) -> str:
    """Measures HippoRAG 2's Figure 3: the first segment's questions while three more segments are added."""
    whole = ctl(daemon, "eval", MUSIQUE / "questions.json", "--continual", "4", "--mode", mode)
    results.setdefault("continual", {})[mode] = whole
    rows = [
        (row["segment"], f"{row['passages']:,}", *(f"{row['recall'][str(k)]:.4f}" for k in KS))
        for row in whole["segments"]
    ]
    return table(
        (f"segment ({whole['n']} questions of the first, `{mode}`)", "passages", *(f"recall@{k}" for k in KS)), rows
    )


# Times.


def _latency(daemon: Daemon, questions: list[EvalQuestion]) -> dict[str, Any]:
    """Returns milliseconds by mode, including encoding: of new questions (made new by a mark) and of their repetitions."""
    out: dict[str, Any] = {}
    for mode in MODES:
        ask(daemon, f"warm-up {mode}", mode)
        took, socket, again = [], [], []
        for question in questions:
            text, began = f"{question.text} ({mode})", time.perf_counter()
            took.append(ask(daemon, text, mode).took_ms)
            told = time.perf_counter()
            ask(daemon, text, mode)
            socket.append((told - began) * 1000)
            again.append((time.perf_counter() - told) * 1000)
        kinds = {"took_ms": took, "socket_ms": socket, "again_ms": again}
        out[mode] = {kind: percentiles(times) for kind, times in kinds.items()}
    return out


def _latency_table(latency: dict[str, Any]) -> str:
    rows = [
        (f"`{mode}`", *(f"{each[kind][share]:.1f}" for kind in each for share in ("p50", "p95")))
        for mode, each in latency.items()
    ]
    kinds = ("took p50", "p95", "socket p50", "p95", "asked again, socket p50", "p95")
    return table(("one query, ms, encoding included", *kinds), rows)


def _large(results: dict[str, Any]) -> str:
    """Measures 97 thousand nodes and 1.4 million edges without a daemon: the query, its walk, and the same walk by igraph."""
    snapshot = large_snapshot(MUSIQUE / "openie.json")
    encoder = make_encoder("sentence-transformers", ENCODER, 64, "cpu")
    questions = [question.text for question in read_questions(MUSIQUE / "questions.json")]
    edges = dict(snapshot.edges)
    figures: dict[str, Any] = {"nodes": snapshot.n_phrases + snapshot.n_passages, "edges": edges, "modes": {}}
    rows = []
    for mode in ("fused", "hipporag2", "dense"):
        retrieve(snapshot, encoder, "warm-up", mode, 5, RetrievalSettings())
        whole, walks = [], []
        for question in questions:
            began = time.perf_counter()
            found = retrieve(snapshot, encoder, f"{question} ({mode})", mode, 5, RetrievalSettings())
            whole.append((time.perf_counter() - began) * 1000)
            walks.append(found.stages_ms.get("walk", 0.0))
        figures["modes"][mode] = {"took_ms": percentiles(whole), "walk_ms": percentiles(walks)}
        shown = [figures["modes"][mode][kind][share] for kind in ("took_ms", "walk_ms") for share in ("p50", "p95")]
        rows.append((f"`{mode}`", *(f"{value:.1f}" for value in shown)))
    context = QueryContext(snapshot, encoder, questions[0], RetrievalSettings())
    pagerank = MODES["fused"].rank(context).pagerank
    assert pagerank is not None
    figures["igraph_prpack_ms"] = _by_igraph(snapshot.adjacency(OCCURRENCE_WEIGHTS).merged(), pagerank.walk.reset)
    rows.append(("the walk of `fused` by igraph's prpack", "", "", f"{figures['igraph_prpack_ms']:.1f}", ""))
    results["large"] = figures
    return (
        f"{figures['nodes']:,} nodes and {sum(edges.values()):,} edges (the paper's size), {snapshot.n_triples:,} triples:"
        "\n\n" + table(("one query, ms, encoding included", "p50", "p95", "of it the walk, p50", "p95"), rows)
    )


def _by_igraph(matrix: Any, reset: NDArray[np.float64]) -> float:
    upper = matrix.tocoo()
    kept = upper.row < upper.col
    graph = igraph.Graph(n=matrix.shape[0], edges=np.stack([upper.row[kept], upper.col[kept]], axis=1))
    weights, restart = upper.data[kept].tolist(), reset.tolist()
    took = []
    for _ in range(3):
        began = time.perf_counter()
        graph.personalized_pagerank(
            directed=False, damping=0.5, reset=restart, weights=weights, implementation="prpack"
        )
        took.append((time.perf_counter() - began) * 1000)
    return min(took)
