"""The files for `bench gpu`."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from bench.support import gpu_bundle

LIMIT = 64 << 20
"""Bytes that may be carried to the machine with the GPU."""


def test_bundle_weights_are_float16_and_computed_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_bundle, "passages", lambda: ["Ada Kerr built the light of Orrey."])
    bundle = gpu_bundle.write(tmp_path / "bundle")
    weights = load_file(bundle / "model" / "model.safetensors")
    assert np.dtype(np.float16) in {each.dtype for each in weights.values()}
    assert sum(file.stat().st_size for file in bundle.rglob("*") if file.is_file()) < LIMIT
    # transformers computes in this type; without it, in the type of the weights.
    assert json.loads((bundle / "model" / "config.json").read_text("utf-8"))["dtype"] == "float32"
