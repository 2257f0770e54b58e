"""The folders of checkpoints in a store, and what their files have in common: names, format, checksums, reading."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from store.durable_files import checksum_of, json_checksum
from store.index.columns.texts import BLOCK_TEXTS
from store.index.part import PartFiles
from store.index.synonyms.crowding import CELL_PHRASES, FULL_CELLS
from store.index.synonyms.search import can_have_synonyms
from store.index.vectors.matrix import BLOCK_VECTORS
from store.links.names import names_text
from store.text.terms import passage_terms
from store.types import Document, SynonymRule
from store.untrusted_names import inside

FORMAT = 19
PREFIX = "snapshot-"
"""Prefix of a checkpoint's folder name, followed by the number of its commit."""

UNFINISHED = "snapshot.new"
MANIFEST = "manifest.json"

TERMS_PROBE = (
    "Isn't it naïve, the cafe\u0301? 2,000 runners ran; 東京タワー",
    "Die Häuser an der alten Straße gehören seit vielen Jahren den Müllers.",
    "Que faire quand on a oublié le mot de passe root ?",
    "Les bibliothèques de la ville sont fermées, et nous avons oublié les livres.",
)
"""The manifest stores the index terms of these texts. Saved postings are usable only if the terms stay the same."""


NAMES_PROBE = (
    Document(
        "file:///a/b%20c/Zeta%20index%2000112233445566778899aabbccddeeff.md", "/a", "T", metadata={"tags": "x, y"}
    ),
    Document("file:///a/b/index.html", "/a", "T", metadata={"aliases": ["A", "7"], "description": "D"}),
    Document("file:///a/mail.eml#1/Offer%201.pdf", "files", "T", metadata={"author": "Ann"}),
    Document("kafka://t/1", "t", "T"),
)
"""The manifest stores the names of these documents; the checkpoint is usable only if the names stay the same."""

PHRASES_PROBE = ("debian 12", "march 2015", "ab", "北京", "world war ii", "ext4")
"""The manifest stores which of these phrases can have synonyms; the checkpoint is usable only if this stays the same."""


def settings(dim: int, rule: SynonymRule) -> list[Any]:
    """Returns the values that determine a checkpoint's content together with the tables. The checkpoint is usable only if these
    values are unchanged."""
    terms: list[Any] = [sorted(passage_terms(text)[0]) for text in TERMS_PROBE]
    names = [names_text(document) for document in NAMES_PROBE]
    phrases = [list(map(can_have_synonyms, PHRASES_PROBE)), CELL_PHRASES, FULL_CELLS]
    return [FORMAT, dim, BLOCK_VECTORS, BLOCK_TEXTS, rule.threshold, rule.variants, *terms, names, phrases]


class CheckpointUnusable(Exception):
    """No checkpoint can be loaded; the message gives the reason."""


class CheckpointTimeout(Exception):
    """The time limit for writing a checkpoint was reached. The unfinished files are removed; the previous checkpoint stays."""


def newest(folder: Path) -> Path | None:
    """Returns the folder of the newest checkpoint."""
    found = [path for path in folder.glob(f"{PREFIX}*") if path.name[len(PREFIX) :].isdigit()]
    return max(found, key=lambda path: int(path.name[len(PREFIX) :]), default=None)


def discard(folder: Path) -> None:
    """Removes all checkpoints."""
    for place in folder.glob(f"{PREFIX}*"):
        shutil.rmtree(place)


def damaged_file(place: Path, *, all_files: bool = False) -> str | None:
    """Returns the name of a damaged file of the checkpoint at `place`; None if no file is damaged.

    Checks only the files whose checksums a start skips; with `all_files`, every file. Raises OSError or ValueError, for example
    if the folder was removed.
    """
    manifest = json.loads((place / MANIFEST).read_text())
    if all_files and manifest.pop("checksum") != json_checksum(manifest):
        return MANIFEST
    for name, (_, checksum, checked_later) in manifest["files"].items():
        if (all_files or checked_later) and checksum_of(inside(place, name)) != checksum:
            return str(name)
    return None


class SavedCheckpoint(PartFiles):
    """The files of a checkpoint. The constructor checks the sizes of all files, and the checksums of all files except those
    that are marked to be checked later."""

    def __init__(self, place: Path, dim: int, rule: SynonymRule) -> None:
        """Raises CheckpointUnusable if the store cannot be opened from this checkpoint."""
        try:
            manifest = json.loads((place / MANIFEST).read_text())
            if manifest.get("settings") != settings(dim, rule):
                raise CheckpointUnusable(f"{place.name} was made by another version or with other settings")
            if manifest.pop("checksum") != json_checksum(manifest):
                raise CheckpointUnusable(f"{place.name}/{MANIFEST} is damaged")
            super().__init__(place, manifest["files"], manifest["values"])
            self.commit = int(manifest["commit"])
            self.time = float(manifest["time"])
            self.next_id: dict[str, int] = manifest["next_id"]
            with ThreadPoolExecutor(2) as checkers:
                for name, good in zip(self._files, checkers.map(self._is_intact, self._files), strict=True):
                    if not good:
                        raise CheckpointUnusable(f"{place.name}/{name} is damaged")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointUnusable(f"{place.name} cannot be read: {error}") from error

    def _is_intact(self, name: str) -> bool:
        file = inside(self.place, name)
        size, checksum, checked_later = self._files[name]
        if file.stat().st_size != size:
            return False
        return bool(checked_later) or checksum_of(file) == checksum
