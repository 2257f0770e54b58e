"""Real manuals in languages that the packaged encoder knows or does not know: memory, starts, answers, and cost of a load.

The drive is Debian's reference and handbook in English, German, French and Chinese, with Python's documentation and man pages
in English: one folder per language below `HIPPOD_BENCH_MANUALS` (by default ../shared/data/manuals/drive). The real daemon
indexes each language alone, then all together, in the order of `HIPPOD_BENCH_DRIVES` (zh,de,fr,en,all). After each drive the
daemon is stopped and started twice: from its checkpoint, and from its tables alone. English questions are asked of the English
drive and of all drives together: the first five passages, in any language, must answer the same questions.
"""

import json
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from bench.support.data import DATA, MANUALS, ROOT, skipped
from bench.support.measuring import MIB, peak_mib, repeated, resident_bytes, seconds
from bench.support.tables import table
from tests.e2e.real_hippod import Daemon

QUESTIONS = (DATA / "manuals" / "questions.json", ROOT / "bench/support/questions/manual_questions_en.json")
TOGETHER = "all"
DRIVES = ("zh", "de", "fr", "en", TOGETHER)
PATIENCE_S = 3 * 3600.0
MOST_MIB = 2048
"""Maximum memory of the daemon for each drive, during indexing and after a start."""

SAMPLE_S = 0.5
POINTS = 12
"""Maximum number of intervals for which memory is reported."""
ASKED, COMPARED = 20, 5
"""Number of requested passages, and number of first passages that may contain the answer and are compared."""


def run(results: dict[str, Any]) -> str:
    if not MANUALS.is_dir():
        return skipped("The section", MANUALS, variable="HIPPOD_BENCH_MANUALS")
    drives = os.environ.get("HIPPOD_BENCH_DRIVES", ",".join(DRIVES)).split(",")
    listed = [each for path in QUESTIONS if path.exists() for each in json.loads(path.read_text("utf-8"))]
    questions = {each["question"]: each["gold"] for each in listed if each["language"] == "en"}
    results["drives"], results["violations"] = {}, []
    for name in drives:
        with tempfile.TemporaryDirectory(prefix="hippod-manuals-") as place:
            results["drives"][name] = found = _drive(Path(place), name, questions)
        print(f"{name}: {json.dumps({key: value for key, value in found.items() if key != 'answers'})}", flush=True)
        results["violations"] += _violations(name, found)
    parts = [_table(results["drives"])]
    if {"en", TOGETHER} <= results["drives"].keys():
        alone, mixed = (results["drives"][name]["answers"] for name in ("en", TOGETHER))
        lost = [each for each in alone if alone[each]["answered"] and not mixed[each]["answered"]]
        results["violations"] += [f"answered alone, not beside other languages: {each}" for each in lost]
        same = sum(set(alone[each]["english"]) == set(mixed[each]["english"]) for each in alone)
        parts.append(
            f"Of {len(alone)} English questions {_answered(alone)} are answered by the first {COMPARED} passages alone, "
            f"{_answered(mixed)} beside other languages; for {same} the first {COMPARED} English passages are the same."
        )
    return "\n\n".join(parts)


def _drive(place: Path, name: str, questions: dict[str, list[str]]) -> dict[str, Any]:
    """Indexes one language, or all languages; then starts the daemon twice."""
    daemon = Daemon(place / "home", encoder={"backend": "sentence-transformers"})
    shutil.copytree(MANUALS if name == TOGETHER else MANUALS / name, daemon.drive, dirs_exist_ok=True)
    try:
        found = _first(daemon)
        found["answers"] = {each: _asked(daemon, each, gold, name) for each, gold in questions.items()}
        found["stop_s"] = _stopped(daemon)
        found["again"] = _again(daemon)
        for snapshot in daemon.store.glob("snapshot-*"):
            shutil.rmtree(snapshot)
        found["from_tables"] = _again(daemon)
        return found
    finally:
        daemon.close()


def _first(daemon: Daemon) -> dict[str, Any]:
    """Measures indexing from an empty store until everything is indexed."""
    daemon.start()
    process = psutil.Process(daemon.pid)
    daemon.http.timeout = PATIENCE_S
    began = time.perf_counter()
    samples: list[tuple[float, int, int]] = []

    def sample() -> None:
        """Adds (seconds, MiB of the daemon, MiB with its children)."""
        own, with_children = resident_bytes(process)
        samples.append((round(time.perf_counter() - began, 1), own // MIB, with_children // MIB))
        time.sleep(SAMPLE_S)

    with repeated(sample):
        status = daemon.wait(PATIENCE_S)
    took = time.perf_counter() - began
    cpu = process.cpu_times()
    length = -(-len(samples) // POINTS)
    intervals = [samples[start : start + length] for start in range(0, len(samples), length)]
    found: dict[str, Any] = {
        name: status[name] for name in ("documents", "failed", "passages", "phrases", "triples", "edges")
    }
    return found | {
        "indistinct_phrases": status.get("indistinct_phrases"),
        "logged": sorted({event["event"] for event in daemon.events("encoder_knows_little")}),
        "took_s": round(took, 1),
        "passages_a_second": round(status["passages"] / took, 1),
        "daemon_cpu_s": round(cpu.user + cpu.system, 1),
        "stage_s": {
            stage: round(daemon.metric("hippod_stage_seconds_sum", stage=stage), 1)
            for stage in ("parse", "split", "extract", "encode", "commit")
        },
        "peak_mib": peak_mib(daemon.pid),
        "peak_with_children_mib": max(with_children for _, _, with_children in samples),
        "over_time": [max(part, key=lambda each: each[2]) for part in intervals],
        "load_at_end": round(os.getloadavg()[0], 1),
    }


def _stopped(daemon: Daemon) -> float:
    began = time.perf_counter()
    assert daemon.stop() == 0, daemon.log_text()[-4000:]
    return round(time.perf_counter() - began, 1)


def _again(daemon: Daemon) -> dict[str, Any]:
    """Starts with the existing store, and stops."""
    ready = round(seconds(daemon.start), 1)
    daemon.query("How is a package installed?", mode=None)
    resident = int(daemon.status()["rss_bytes"]) >> 20
    found = {"ready_s": ready, "peak_mib": peak_mib(daemon.pid), "rss_mib": resident}
    return found | {"stop_s": _stopped(daemon)}


def _asked(daemon: Daemon, question: str, gold: list[str], name: str) -> dict[str, Any]:
    """Whether the first passages contain all gold, and the ids of the first passages of English documents."""
    inside = daemon.drive.as_uri() + ("/en/" if name == TOGETHER else "/")
    found = daemon.query(question, mode=None, k=ASKED)
    texts = [f"{each['title']}\n{each['text']}" for each in found[:COMPARED]]
    holders = [(each["id"], [each["document"], *each.get("also_in", ())]) for each in found]
    english = [passage for passage, uris in holders if any(uri.startswith(inside) for uri in uris)]
    return {
        "answered": all(any(re.search(pattern, text) for text in texts) for pattern in gold),
        "english": english[:COMPARED],
    }


def _answered(answers: dict[str, dict[str, Any]]) -> int:
    return sum(each["answered"] for each in answers.values())


def _violations(name: str, found: dict[str, Any]) -> list[str]:
    peaks = {"indexing": found["peak_mib"]}
    peaks |= {f"start {step}": found[step]["peak_mib"] for step in ("again", "from_tables")}
    return [
        f"{name}: {peak:,} MiB at the peak while {what}, {MOST_MIB:,} are the most"
        for what, peak in peaks.items()
        if peak > MOST_MIB
    ]


def _table(drives: dict[str, dict[str, Any]]) -> str:
    rows: list[tuple[str, Any]] = [
        ("documents", lambda found: found["documents"]),
        ("passages", lambda found: found["passages"]),
        ("phrases", lambda found: found["phrases"]),
        ("phrases: crowded / unknown", _indistinct),
        ("synonym edges", lambda found: found["edges"]["synonym"]),
        ("indexed in, s", lambda found: found["took_s"]),
        ("passages a second", lambda found: found["passages_a_second"]),
        (
            "s in parse / split / extract / encode / commit",
            lambda found: " / ".join(map(str, found["stage_s"].values())),
        ),
        ("peak while indexing, MiB", lambda found: found["peak_mib"]),
        ("peak with children, MiB", lambda found: found["peak_with_children_mib"]),
        ("stop, s", lambda found: found["stop_s"]),
        ("ready again, s", lambda found: found["again"]["ready_s"]),
        ("peak at that start, MiB", lambda found: found["again"]["peak_mib"]),
        ("ready from tables alone, s", lambda found: found["from_tables"]["ready_s"]),
        ("peak at that start, MiB", lambda found: found["from_tables"]["peak_mib"]),
    ]
    figures = table(("", *drives), [(what, *map(value, drives.values())) for what, value in rows])
    over_time = [
        (name, ", ".join(f"{at:.0f} s {own:,}" for at, own, _ in found["over_time"])) for name, found in drives.items()
    ]
    return f"{figures}\n\n{table(('drive', 'memory of the daemon over time, MiB'), over_time)}"


def _indistinct(found: dict[str, Any]) -> str:
    indistinct = found["indistinct_phrases"] or {"crowded": 0, "unknown": 0}
    return f"{indistinct['crowded']} / {indistinct['unknown']}"
