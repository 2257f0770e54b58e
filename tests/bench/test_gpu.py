"""`bench gpu` on the CPU instead of a GPU: the bundle loads, and its vectors equal those of hippod's engine."""

from pathlib import Path
from typing import Any

import pytest

from bench.sections.cost import gpu
from bench.support import gpu_bundle
from tests.torch_extra import needs_torch

pytestmark = [*needs_torch, pytest.mark.slow]
TEXTS = [f"Light {number} of Orrey was built by Ada Kerr in 18{number:02}." for number in range(12)]


def test_gpu_bench_measures_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_bundle, "passages", lambda: TEXTS)
    monkeypatch.setattr(gpu_bundle, "REFERENCES", 5)
    for name, value in {"DEVICE": "cpu", "BATCHES": (1, 4), "QUERIES": 3}.items():
        monkeypatch.setattr(gpu, name, value)
    monkeypatch.setattr(gpu, "BUNDLE", gpu_bundle.write(tmp_path / "bundle"))
    results: dict[str, Any] = {}
    printed = gpu.run(results)
    assert results.get("violations") is None, "the weights in float16 give the vectors of those in float32, to 1e-3"
    found = results["gpu"]
    assert (found["device"], found["passages"]) == ("cpu", len(TEXTS))
    assert all(0 < found[f"batch {size}"]["difference"] <= gpu.COMPARED_MAX for size in (1, 4))
    assert all(found[name] > 0 for name in ("query_ms", "query_ms_beside", "cpu_passages_per_s"))
    assert "| 4 |" in printed
