"""The mark: the last commit that the tables contain, and the version of each table at that commit.

A change of tables (a flush of the log, a slice of a purge, a compaction) writes to several tables, flushes their files and then
replaces the mark. Replacing the mark makes the change of all tables atomic, because opening drops every version above the
mark's. A store of format 4 or earlier has no mark; there, the last row of `commits` contains the versions.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.compute as pc
import structlog

from store.durable_files import durable_file, json_checksum, new_folder_before_restore, sync
from store.errors import RESTORE, StoreDamaged
from store.lance.layout import is_known_name, is_whole, manifests, table_folder, version_of
from store.lance.schema import commits
from store.lance.tables import read_unopened
from store.lance.versions import newest_readable, set_aside
from store.log.write_ahead_log import FOLDER

NAME = "mark"
"""Name of the file in the log's folder."""

FIRST_FORMAT = 5
"""The first format with a mark."""


logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Mark:
    """The tables at `versions` contain the commits up to `commit`."""

    commit: int
    versions: Mapping[str, int]


def read_mark(store: Path) -> Mark | None:
    """Returns the mark; None if the store has none. Raises StoreDamaged or OSError."""
    path = store / FOLDER / NAME
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_bytes())
        checksum = content.pop("checksum")
        if checksum != json_checksum(content):
            raise ValueError
        return Mark(content["commit"], content["versions"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreDamaged(f"the file {path} is damaged; {RESTORE}") from error


def check_mark(store: Path, expected: Mark) -> None:
    """Raises StoreDamaged if the mark on the disk is not `expected`, or OSError."""
    if read_mark(store) != expected:
        raise StoreDamaged(
            f"the file {store / FOLDER / NAME} does not name the present versions of the tables; {RESTORE}"
        )


def current_mark(store: Path) -> Mark | None:
    """Returns the mark of a store that no process has open. If the tables were written after the mark by an older hippod, they
    come from a restored backup of an older format. In that case, the log is moved to `before-restore-…`, and None is returned.
    Raises StoreDamaged or OSError."""
    mark = read_mark(store)
    if mark is None or not is_stale(store, mark, repair=True):
        return mark
    aside = new_folder_before_restore(store)
    (store / FOLDER).rename(aside / FOLDER)
    sync(aside)
    sync(store)
    logger.warning("log_of_newer_format_set_aside", path=aside / FOLDER, commit=mark.commit)
    return None


def is_stale(store: Path, mark: Mark, *, repair: bool = False) -> bool:
    """Whether an older hippod has written the tables since the mark. An older hippod has written them if the newest complete
    version of `commits` has a format without a mark. With `repair`, moves incomplete versions to `torn/`; without it, an
    incomplete newest version counts as not stale."""
    while found := [path for path in manifests(table_folder(store, "commits")) if is_known_name(path)]:
        try:
            if not is_whole(found[0]):
                raise ValueError(f"{found[0]} is incomplete")
            return _format_of_tables(store) < FIRST_FORMAT
        except (OSError, RuntimeError, ValueError):
            if not repair or version_of(found[0]) <= mark.versions["commits"]:
                break  # opening the store reports the damage
            set_aside(store, "commits", found[0])  # belongs to no commit, whichever hippod wrote it
    return False


def _format_of_tables(store: Path) -> int:
    rows = read_unopened(store, "commits", commits.SCHEMA.names)
    stated = pc.match_substring(rows["facts"], '"format"')
    facts = map(json.loads, rows["facts"].filter(stated).to_pylist())
    found = max((int(each["format"]) for each in facts if "format" in each), default=1)
    if found < FIRST_FORMAT:
        commits.from_table(rows)  # raises ValueError if the file lacks the content of rows
    return found


def write_mark(store: Path, mark: Mark) -> None:
    """Replaces the mark; on return, the new mark is on the disk. Raises OSError."""
    content = asdict(mark)
    with durable_file(store / FOLDER / NAME) as file:
        file.write(json.dumps(content | {"checksum": json_checksum(content)}).encode())


def mark_of_tables(folder: Path) -> Mark | None:
    """Returns the mark that the last row of `commits` implies. Needed for a store without a mark: an earlier hippod wrote the
    store, or its first opening did not end. Returns None for a store without commits."""
    if not table_folder(folder, "commits").exists():
        return None
    columns = commits.SCHEMA.names
    version = newest_readable(folder, "commits", lambda: read_unopened(folder, "commits", columns))
    rows = commits.from_table(read_unopened(folder, "commits", columns))
    if not rows:
        return None
    last = rows[-1]
    if not last.versions:
        raise StoreDamaged(f"the store {folder} lacks its file log/mark; {RESTORE}")
    return Mark(last.seq, {**last.versions, "commits": version})
