"""Takes a table's old versions off the disk, and the files that only they name.

LanceDB prunes as a part of `optimize`, which first rewrites every fragment of less than a million rows: seconds for each
hundred thousand vectors, however little there is to prune. Here nothing is rewritten. A file goes where no manifest that stays
names it (`store.lance.layout`). Nothing goes where the layout is not as expected: every manifest's name must be a version, and
the newest manifest must name exactly one data file for each fragment that Lance itself counts.
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
    """Removes the versions of a table that are older than `min_age_s` seconds and not among `versions`.

    `listing` is what the table's folders had at a moment when nothing was being written (`layout.file_names`): only such files
    go. The newest version of that moment stays; it has `fragments` fragments. Returns how many bytes were freed.
    """
    present = manifests(table)
    if not present or not all(map(is_known_name, present)):
        return 0
    # Versions that came after the listing stay, whatever they name.
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
    for path in reversed(old):  # Oldest first: what is left after a crash is a table without its beginnings.
        freed += _remove(path)
    return freed


def _remove(path: Path) -> int:
    with suppress(FileNotFoundError):
        size = path.stat().st_size
        path.unlink()
        return size
    return 0
