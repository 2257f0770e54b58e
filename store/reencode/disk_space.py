"""The disk space that a re-encoding needs at its largest, before the old vectors are deleted."""

import shutil
from pathlib import Path

from store.fixed_point import width
from store.lance.layout import table_folder
from store.reencode.kept_texts import KINDS
from store.reencode.new_vectors import KEY_BYTES

VECTOR_COPIES = 3
"""The new vectors are in their file, in the new tables, and in the index's files."""
CODES_SHARE = 0.3
"""Compressed copies of the vectors in the index, as a share of the vectors."""


def needed_bytes(store: Path, rows: int, encoded: int, old_dim: int, dim: int) -> int:
    """Returns how many bytes more the store will need: for the new vectors of `rows` texts, of which `encoded` have theirs
    already, and for the new tables' copy of the texts."""
    vector = 2 * width(dim)
    tables = sum(
        file.stat().st_size for kind in KINDS for file in table_folder(store, kind).rglob("*") if file.is_file()
    )
    texts = max(tables - rows * 2 * width(old_dim), 0)
    return round(
        rows * vector * (VECTOR_COPIES + CODES_SHARE) + (rows - encoded) * KEY_BYTES - encoded * vector + texts
    )


def free_bytes(store: Path) -> int:
    return shutil.disk_usage(store).free
