"""`python -m bench.support.gpu_bundle [FOLDER]`: files for `bench gpu` on a machine without hippod's model, below 64 MiB.

The bundle has the packaged model with weights rounded to float16 (computed in float32), MuSiQue's passages (without ../shared,
the example drive's texts), and vectors that hippod's engine computed on the CPU from the original weights.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from bench.support.data import DRIVE, MUSIQUE, ROOT
from memory.encoder.minilm import load_minilm
from memory.encoder.packaged_model import MINILM, verified_weights

FOLDER = ROOT / "build" / "gpu"
CORPUS = MUSIQUE / "corpus.json"
REFERENCES = 256
"""Number of passages whose vector from the CPU is in the bundle."""


def passages() -> list[str]:
    if CORPUS.exists():
        return [f"{each['title']}\n{each['text']}" for each in json.loads(CORPUS.read_text("utf-8"))]
    files = sorted(DRIVE.rglob("*.md"))
    return [part for file in files for part in file.read_text("utf-8").split("\n\n") if len(part.split()) > 10]


def write(folder: Path = FOLDER) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    weights_file = verified_weights(MINILM)
    source = weights_file.parent
    shutil.copytree(source, folder / "model", ignore=shutil.ignore_patterns("*.safetensors", "README.md", "vocab.txt"))
    weights = load_file(weights_file)
    save_file(
        {name: each.astype(np.float16) if each.dtype == np.float32 else each for name, each in weights.items()},
        folder / "model" / "model.safetensors",
        metadata={"format": "pt"},
    )
    # Without `dtype`, transformers would compute in the type of the weights, float16, which hippod does not use.
    config = folder / "model" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text("utf-8")), "dtype": "float32"}), "utf-8")
    texts = passages()
    (folder / "passages.json").write_text(json.dumps(texts), "utf-8")
    # sentence-transformers, which `bench gpu` measures, encodes only the beginning of a long text.
    encoder = load_minilm(weights_file, MINILM.beginnings_only or MINILM.identity, 64, windows=False)
    np.save(folder / "reference.npy", encoder.encode(texts[:REFERENCES]))
    return folder


if __name__ == "__main__":
    made = write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    size = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
    print(f"{made}: {size / 2**20:.0f} MiB")
