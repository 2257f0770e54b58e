"""`make bench` fails where something did not hold that holds on any machine; what takes long is its own business."""

import importlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bench.__main__ as program
from bench.sections.faults import api, fuzz
from bench.sections.faults.soak import DESCRIPTORS_APART, SETTLED_AT, Held, Soak, violations
from bench.support.growth import thresholds
from tests.fuzz.running import Fuzzed

MIB = 1 << 20
Sections = Callable[..., None]


@pytest.fixture
def sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sections:
    """Takes the place of the sections: each leaves the violations that are given for it."""

    def put(**broken: list[str] | None) -> None:
        def load(name: str) -> SimpleNamespace:
            def run(results: dict[str, Any]) -> str:
                left = broken[name.rpartition(".")[2]]
                if left is not None:
                    results["violations"] = left
                return "| measured |"

            return SimpleNamespace(run=run)

        (tmp_path / "sections" / "cost").mkdir(parents=True, exist_ok=True)
        for name in broken:
            (tmp_path / "sections" / "cost" / f"{name}.py").touch()
        monkeypatch.setattr(program, "HERE", tmp_path)
        monkeypatch.setattr(program, "SECTIONS", dict.fromkeys(broken, "cost"))
        monkeypatch.setattr(importlib, "import_module", load)

    return put


def test_a_violation_is_listed_under_its_section_stored_and_makes_the_exit_code_1(
    sections: Sections, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sections(soak=["memory grew"], page=None, fuzz=[])
    assert program.main([]) == 1
    said = capsys.readouterr().out
    assert "| measured |\n\n**Does not hold:**\n\n- memory grew\n" in said
    assert said.count("Does not hold") == 1
    kept = {file.stem: json.loads(file.read_text())["violations"] for file in (tmp_path / "results").iterdir()}
    assert kept == {"soak": ["memory grew"], "page": [], "fuzz": []}
    assert program.main(["page", "fuzz"]) == 0


def soak(rss_mib: list[int], descriptors: list[int], changes: int = SETTLED_AT, errors: int = 0) -> Soak:
    held = [
        Held(rss * MIB, rss * MIB, open_, 40, 20, 3, 300, 900) for rss, open_ in zip(rss_mib, descriptors, strict=True)
    ]
    return Soak(changes=Counter(edit=changes), errors=["query: 500"] * errors, held=held)


def test_soak_reports_memory_growth_descriptor_growth_and_errors() -> None:
    # What was held before the first part counts for nothing.
    assert violations(soak([100, 280, 300, 290], [30, 60, 60 + DESCRIPTORS_APART, 60])) == []
    [grown] = violations(soak([100, 280, 285, 295], [60] * 4))
    assert "memory grew by 5.4%" in grown
    assert violations(soak([100, 280, 285, 350], [60] * 4, changes=SETTLED_AT - 1)) == []
    [opened] = violations(soak([100, 280, 280, 280], [60, 60, 61 + DESCRIPTORS_APART, 60], changes=100))
    assert "descriptors" in opened and "[60, 63, 60]" in opened
    assert violations(soak([100, 280, 280], [60] * 3, changes=100, errors=2)) == ["2 errors"]


def test_api_check_reports_undocumented_answers_and_5xx() -> None:
    assert api.violations(Counter({200: 4_000, 422: 1_000}), [], 0) == []
    assert api.violations(Counter({200: 1, 500: 2, 503: 1_000}), ["GET /v1/status …"], 3) == [
        "2 answers of 500",
        "1,000 answers of 503",
        "1 answers are not as documented",
        "3 requests met a fault of the daemon's",
    ]


def test_an_input_that_fails_is_a_violation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = [Fuzzed("queries", inputs=100), Fuzzed("json-lines", inputs=100, failed=2)]
    monkeypatch.setattr(fuzz, "fuzz", lambda *_, **__: found)
    monkeypatch.setattr(fuzz, "KEPT", tmp_path / "kept")
    results: dict[str, Any] = {}
    fuzz.run(results)
    assert results["violations"] == ["json-lines: 2 inputs failed"]


def test_growth_check_reports_machine_independent_limits_and_failed_steps() -> None:
    def judged(what: str, anywhere: bool, holds: bool | None) -> dict[str, Any]:
        return {"what": what, "measured": 5, "bound": "at most 3", "holds": holds, "anywhere": anywhere}

    results = {
        "must_hold": [
            judged("store, times one build", True, False),
            judged("edges found", True, True),
            judged("memory", True, None),
            judged("ms of a query", False, False),
        ],
        "commits": {"commits_failed": 1},
    }
    assert thresholds.violations([{"passages": 2_000, "ask_failed": -9}], results) == [
        "the step ask failed",
        "the step commits failed",
        "store, times one build: 5, which is to be at most 3",
    ]
