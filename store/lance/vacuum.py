"""Deletes a table's old versions and the files that only they need.

LanceDB prunes as a part of `optimize`, which first rewrites every fragment of less than a million rows: seconds per hundred
thousand vectors, even if there is little to prune. This module rewrites nothing. It deletes a file if no remaining manifest
names it (`store.lance.layout`). It deletes nothing if the layout is unexpected: every manifest's name must be a version,
and the newest manifest must name exactly one data file per fragment counted by Lance.
"""

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from store.lance.layout import (
    DATA,
    DELETIONS,
    TRANSACTIONS,
    VERSIONS,
    is_known_name,
    manifest_proper,
    manifests,
    named_in,
    version_of,
)


def prune(
    table: Path, versions: Collection[int], fragments: int, listing: Mapping[str, Collection[str]], min_age_s: float
) -> int:
    """Deletes the versions of a table that are older than `min_age_s` seconds and not among `versions`. Returns the number
    of freed bytes.

    `listing` holds the names in the table's folders at a moment without writes (`layout.file_names`); only these files may
    be deleted. The newest version of that moment, which has `fragments` fragments, is kept.
    """
    present = manifests(table)
    if not present or not all(map(is_known_name, present)):
        return 0
    # Versions that are newer than the listing are kept, with all files that they name.
    listed = [path for path in present if path.name in listing[VERSIONS]]
    since = time.time() - min_age_s
    old = [path for path in listed[1:] if version_of(path) not in versions and path.stat().st_mtime <= since]
    if not old:
        return 0
    newest = manifest_proper(listed[0])
    if len(named_in(newest, DATA, listing[DATA])) != fragments:
        return 0
    removed = set(old)
    staying = [manifest_proper(path) for path in present if path not in removed]
    freed = 0
    for folder in (DATA, DELETIONS, TRANSACTIONS):
        unnamed = set(listing[folder])
        for manifest in staying:
            unnamed -= named_in(manifest, folder, unnamed)
        freed += sum(_remove(table / folder / name) for name in unnamed)
    for path in reversed(old):  # Oldest first, so that a crash leaves a table that only lacks its oldest versions.
        freed += _remove(path)
    return freed


def _remove(path: Path) -> int:
    with suppress(FileNotFoundError):
        size = path.stat().st_size
        path.unlink()
        return size
    return 0
