"""The mark: the last commit that the tables contain, and each table's version with it.

A change of tables (a flush of the log, a slice of a purge, a compaction) writes to several tables, flushes their files, and
then replaces the mark. The mark makes the change of all tables atomic: opening drops every version above it. A store of format
4 or earlier has no mark; there the last row of `commits` names the versions.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from store.durable_files import durable_file
from store.errors import StoreDamaged
from store.lance.layout import table_folder
from store.lance.schema import commits
from store.lance.tables import read_unopened
from store.lance.versions import newest_readable
from store.log.log_files import FOLDER

NAME = "mark"
"""Name of the file in the log's folder."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The tables at `versions` contain the commits up to `commit`."""

    commit: int
    versions: Mapping[str, int]


def read_mark(store: Path) -> Mark | None:
    """Returns None if there is no mark. Raises StoreDamaged or OSError."""
    path = store / FOLDER / NAME
    if not path.exists():
        return None
    try:
        said = json.loads(path.read_bytes())
        checksum = said.pop("checksum")
        if checksum != _checksum(said):
            raise ValueError
        return Mark(said["commit"], said["versions"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreDamaged(f"the file {path} is damaged; restore a backup with `hippod --restore DIR`") from error


def write_mark(store: Path, mark: Mark) -> None:
    """Replaces the mark; the new one is on the disk on return. Raises OSError."""
    content = asdict(mark)
    with durable_file(store / FOLDER / NAME) as file:
        file.write(json.dumps(content | {"checksum": _checksum(content)}).encode())


def mark_of_tables(folder: Path) -> Mark | None:
    """Returns the mark of a store that has none, by the last row of its log: an earlier hippod wrote the store, or the first
    opening did not end. None for a store without commits."""
    if not table_folder(folder, "commits").exists():
        return None
    columns = commits.SCHEMA.names
    version = newest_readable(folder, "commits", lambda: read_unopened(folder, "commits", columns))
    rows = commits.from_table(read_unopened(folder, "commits", columns))
    if not rows:
        return None
    last = rows[-1]
    if not last.versions:
        raise StoreDamaged(f"the store {folder} lacks its file log/mark; restore a backup with `hippod --restore DIR`")
    return Mark(last.seq, {**last.versions, "commits": version})


def _checksum(content: object) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())
