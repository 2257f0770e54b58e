"""Takes a table's old versions off the disk, and the files that only they name.

LanceDB prunes as a part of `optimize`, which first rewrites every fragment of less than a million rows: seconds for each
hundred thousand vectors, however little there is to prune. Here nothing is rewritten. A manifest names its data files and
its transaction in plain text and each deletion file by its number, so a file belongs to a version where the manifest of
that version holds its name. What that cannot be relied on for (another layout, say) is left alone: the newest manifest
must name exactly one data file for each fragment that Lance itself counts.
"""

import struct
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

NEWEST = 2**64 - 1
"""Lance counts the names of manifests down from here, so that the newest version comes first in a listing."""


def version_of(manifest: Path) -> int:
    return NEWEST - int(manifest.stem)


def prune(
    table: Path, versions: Collection[int], fragments: int, settled: Mapping[str, Collection[str]], safe_s: float
) -> int:
    """Removes the versions of `table` (a `.lance` folder) that are older than `safe_s` seconds and not among `versions`.

    `settled` is what the table's folders held at a moment when nothing was being written (`listing`): only such files go,
    and only where no version that stays names them. The newest version of then stays; it has `fragments` fragments.
    Returns how many bytes were freed.
    """
    manifests = sorted((table / "_versions").glob("*.manifest"))
    if not manifests or any(not path.stem.isdigit() or len(path.stem) != 20 for path in manifests):
        return 0
    # Versions that came after `settled` was listed stay, whatever they name.
    known = [path for path in manifests if path.name in settled["_versions"]]
    since = time.time() - safe_s
    old = [path for path in known[1:] if version_of(path) not in versions and path.stat().st_mtime <= since]
    if not old:
        return 0
    newest = _content(known[0])
    if sum(name.encode() in newest for name in settled["data"]) != fragments:
        return 0
    gone = set(old)
    kept = [_content(path) for path in manifests if path not in gone]
    freed = 0
    for folder, mark in _MARKS.items():
        for name in settled[folder]:
            sought = mark(name)
            if not any(sought in manifest for manifest in kept):
                freed += _remove(table / folder / name)
    for path in reversed(old):  # Oldest first: what is left after a crash is a table without its beginnings.
        freed += _remove(path)
    return freed


def _content(manifest: Path) -> bytes:
    """The manifest proper: before it may stand the transaction, which names what it took away too."""
    whole = manifest.read_bytes()
    (start,) = struct.unpack("<Q", whole[-16:-8])
    return whole[start:]


def listing(table: Path) -> dict[str, set[str]]:
    """The names of the files of a table, by folder."""
    found = {}
    for folder in (*_MARKS, "_versions"):
        place = table / folder
        found[folder] = {path.name for path in place.iterdir()} if place.is_dir() else set()
    return found


def fragments_with_deletions(table: Path) -> list[int]:
    """The fragments of which the newest version leaves rows out that are still in their files."""
    manifests = sorted((table / "_versions").glob("*.manifest"))
    if not manifests or not (table / "_deletions").is_dir():
        return []
    newest = _content(manifests[0])
    found = {path.name for path in (table / "_deletions").iterdir() if _deletion(path.name) in newest}
    return sorted({int(name.split("-")[0]) for name in found})


def _remove(path: Path) -> int:
    with suppress(FileNotFoundError):
        size = path.stat().st_size
        path.unlink()
        return size
    return 0


def _plain(name: str) -> bytes:
    return name.encode()


def _deletion(name: str) -> bytes:
    """`<fragment>-<version>-<number>.arrow`: the number, 64 random bits, as a manifest writes it."""
    number = int(Path(name).stem.split("-")[2])
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_MARKS: dict[str, Callable[[str], bytes]] = {"data": _plain, "_deletions": _deletion, "_transactions": _plain}
"""What a manifest that needs a file of each folder holds."""
