"""The packaged encoder on a GPU: passages per second, time of a query, and difference from the CPU's vectors.

hippod's own backend computes them (`memory.encoder.sentence_transformer`, `device = "cuda"`). The machine with the GPU needs
sentence-transformers and the folder that `python -m bench.support.gpu_bundle` writes, in build/gpu or $HIPPOD_BENCH_BUNDLE. The
bundle's weights are float16; the reference vectors are from the original weights. HIPPOD_BENCH_DEVICE=cpu rehearses the section
on a machine without a GPU.
"""

import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.support.measuring import repeated
from bench.support.tables import table
from memory.encoder.sentence_transformer import SentenceTransformerEncoder

BUNDLE = Path(os.environ.get("HIPPOD_BENCH_BUNDLE", "build/gpu"))
DEVICE = os.environ.get("HIPPOD_BENCH_DEVICE", "cuda")
BATCHES = (1, 16, 64, 256)
COMPARED_MAX = 1e-3
"""Maximum difference of a component from the same component of the CPU's vector."""
QUERIES = 100


def run(results: dict[str, Any]) -> str:
    """Fills `results["gpu"]`.

    The keys are the device; `passages_per_s` and `difference` by batch size; `query_ms` alone and while passages are encoded;
    and `cpu_passages_per_s`, the speed of the same library on the CPU.
    """
    try:
        import torch
    except ModuleNotFoundError:
        return "Not measured: torch is not installed (`make install EXTRAS=torch`)."
    on_gpu = DEVICE.startswith("cuda")
    if on_gpu and not torch.cuda.is_available():
        return "Not measured: torch sees no CUDA device on this machine."
    texts: list[str] = json.loads((BUNDLE / "passages.json").read_text("utf-8"))
    reference = np.load(BUNDLE / "reference.npy")
    name = torch.cuda.get_device_name(DEVICE) if on_gpu else DEVICE
    found: dict[str, Any] = {"device": name, "torch": torch.__version__, "passages": len(texts)}
    rows = []
    for size in BATCHES:
        encoder = _encoder(size, DEVICE)
        encoder.encode(texts)  # loads the kernels for each shape
        measured = texts[: len(texts) if size > 1 else len(reference)]
        began = time.perf_counter()
        vectors = encoder.encode(measured)
        rate = len(measured) / (time.perf_counter() - began)
        difference = float(np.abs(vectors[: len(reference)] - reference).max())
        found[f"batch {size}"] = {"passages_per_s": rate, "difference": difference}
        rows.append((size, f"{rate:,.0f}", f"{difference:.1e}"))
        if difference > COMPARED_MAX:
            results.setdefault("violations", []).append(f"vectors in batches of {size} differ by {difference:.1e}")
    found["query_ms"] = _queries(encoder, texts)
    with repeated(lambda: encoder.encode(texts)):
        found["query_ms_beside"] = _queries(encoder, texts)
    began = time.perf_counter()
    _encoder(64, "cpu").encode(texts[: len(reference)])
    found["cpu_passages_per_s"] = len(reference) / (time.perf_counter() - began)
    results["gpu"] = found
    return "\n".join(
        [
            f"{found['device']}, torch {found['torch']}, {len(texts):,} passages.",
            "",
            table(("texts in a batch", "passages a second", "largest difference from the CPU"), rows),
            "",
            f"A query takes {found['query_ms']:.1f} ms (p50 of {QUERIES}), {found['query_ms_beside']:.1f} ms while passages "
            f"are encoded. The processors of that machine encode {found['cpu_passages_per_s']:,.0f} passages a second.",
        ]
    )


def _encoder(batch_size: int, device: str) -> SentenceTransformerEncoder:
    return SentenceTransformerEncoder(str(BUNDLE / "model"), "all-MiniLM-L6-v2", batch_size, device)


def _queries(encoder: SentenceTransformerEncoder, texts: list[str]) -> float:
    """Returns the median milliseconds of one query. All queries are different, so no result is cached."""
    times = []
    for text in texts[:QUERIES]:
        began = time.perf_counter()
        encoder.encode_query(" ".join(text.split()[:12]) + f" {began}")
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)
