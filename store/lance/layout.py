"""The layout of a Lance table on disk, as far as the store needs it. `tests/store/lance/test_lance_layout.py` verifies it.

A table is a folder. Each version has a manifest. Manifest names count down from 2⁶⁴ - 1, so that a listing begins with the
newest. The manifest's file may begin with the transaction, which also names the removed files. A manifest names its data files
in plain text. Lance never changes a file once it is written.
"""

import re
import struct
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

DATA, DELETIONS, TRANSACTIONS, VERSIONS = "data", "_deletions", "_transactions", "_versions"
"""Folders inside a table's folder: rows, deleted rows, transactions (one per write), manifests."""

MANIFEST_DIGITS = 20
HIGHEST_VERSION = 2**64 - 1

END_MAGIC = b"LANC"
"""Last bytes of every completely written Lance file."""

VERSION_HINT = "latest_version_hint.json"
"""Name of a file next to the manifests that may contain the number of the newest version. Lance works without this file."""

FRAGMENT_BITS = 32
"""A row id consists of the number of the row's fragment and the row's 32-bit position in the fragment."""


TABLE_SUFFIX = ".lance"
"""Suffix of a table's folder."""


def table_folder(store: Path, table: str) -> Path:
    return store / f"{table}{TABLE_SUFFIX}"


def manifests(table: Path) -> list[Path]:
    """Returns the manifests in a table's folder, the newest first."""
    return sorted((table / VERSIONS).glob("*.manifest"))


def is_known_name(manifest: Path) -> bool:
    """Whether `version_of` can parse a manifest's name."""
    return manifest.stem.isdigit() and len(manifest.stem) == MANIFEST_DIGITS


def manifest_name(version: int) -> str:
    return f"{HIGHEST_VERSION - version:0{MANIFEST_DIGITS}}.manifest"


def version_of(manifest: Path) -> int:
    return HIGHEST_VERSION - int(manifest.stem)


def is_whole(manifest: Path) -> bool:
    """Whether a manifest was written completely."""
    with manifest.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - len(END_MAGIC), 0))
        return file.read() == END_MAGIC


def incomplete_newest(found: Sequence[Path]) -> Sequence[Path]:
    """Returns the manifests that are newer than the newest complete one; `found` is sorted from newest to oldest."""
    return list(takewhile(lambda path: not is_whole(path), found))


def manifest_proper(manifest: Path) -> bytes:
    """Returns the manifest without the transaction that may precede it in the file."""
    whole = manifest.read_bytes()
    (start,) = struct.unpack("<Q", whole[-16:-8])
    return whole[start:]


_DATA_NAME = re.compile(rb"[01]{24}[0-9a-f]{26}\.lance")


def file_names(table: Path) -> dict[str, set[str]]:
    """Returns the names of a table's files, by folder."""
    found = {}
    for folder in (DATA, DELETIONS, TRANSACTIONS, VERSIONS):
        place = table / folder
        found[folder] = {path.name for path in place.iterdir()} if place.is_dir() else set()
    return found


def data_files_in_order(table: Path) -> list[str]:
    """Returns the data files of the newest version, in the order of its fragments."""
    return [name.decode() for name in dict.fromkeys(_DATA_NAME.findall(manifest_proper(manifests(table)[0])))]
