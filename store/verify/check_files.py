"""Finds damaged files of the store by the checksums of the tables' files and the checkpoint's files."""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from store.checkpoint.files import MANIFEST, damaged_file, newest
from store.durable_files import checksum_of
from store.errors import RESTORE
from store.index.live_index import LiveIndex
from store.lance.checksums import NAME, Checksums
from store.lance.layout import DATA, data_files_in_order
from store.lance.tables import open_for_reading
from store.types import passage_id

KEYS = {
    "passages": ("id", "title"),
    "phrases": ("text",),
    "triples": ("row",),
    "extractions": ("passage",),
    "synonyms": ("a", "b"),
    "documents": ("uri",),
    "commits": ("seq",),
}
"""The columns of each table that identify a row to users."""

DAMAGE = (OSError, RuntimeError, ValueError, LookupError, TypeError, ArithmeticError, AttributeError, struct.error)
"""Errors that Lance, Arrow and the parsing of rows raise for damaged files."""

NAMED_ROWS = 5
"""Maximum number of rows of a damaged file that a problem names; further rows are only counted."""


UNREADABLE = " (its rows cannot be read)"


@dataclass(slots=True)
class CheckedTables:
    """Number of table files that were compared with their checksums (`checked`), and of files for which an earlier hippod
    recorded no checksum (`without_checksum`)."""

    checked: int = 0
    without_checksum: int = 0
    problems: list[str] = field(default_factory=list)


def check_tables(
    store: Path, files: Mapping[str, Iterable[str]], checksums: Checksums, rows_in: Callable[[str, str], str]
) -> CheckedTables:
    """Compares table files with their checksums. The caller must prevent pruning.

    `rows_in(table, name)` returns a clause that names the rows in a damaged file.
    """
    found = CheckedTables()
    for table, names in files.items():
        for name in names:
            known = checksums.get(name)
            if known is None or known.value is None:
                found.without_checksum += 1
            else:
                found.checked += 1
                if _checksum(store / name) != known.value:
                    found.problems.append(
                        f"the file {name} of the table {table} is damaged: its checksum differs from the recorded one"
                        f"{rows_in(table, name)}; {RESTORE}"
                    )
    return found


def damaged_elsewhere(store: Path, checksums: Checksums) -> Iterator[str]:
    """Yields the problems of the checksum file and of the newest checkpoint."""
    for number in checksums.damaged_lines():
        yield f"line {number} of the file {NAME} is damaged"
    if (place := newest(store)) is not None and (damaged := _damaged_in(place)) is not None:
        yield f"the file {place.name}/{damaged} of the checkpoint is damaged; hippod replaces it at its next start"


def _checksum(file: Path) -> int | None:
    try:
        return checksum_of(file)
    except OSError:
        return None


def _damaged_in(place: Path) -> str | None:
    try:
        return damaged_file(place, all_files=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return MANIFEST


def rows_in(store: Path, dim: int, table: str, name: str) -> str:
    """Returns a clause that names the rows in a data file; "" for other files."""
    folder, part, file = Path(name).parts
    if part != DATA:
        return ""
    try:
        tables = open_for_reading(store, dim)
        order = data_files_in_order(store / folder)
        fragments = tables.fragment_numbers(table)
        if len(order) != len(fragments):
            return UNREADABLE
        rows = tables.read_fragment(table, KEYS[table], fragments[order.index(file)]).to_pylist()
    except DAMAGE:
        return UNREADABLE
    named = "; ".join(", ".join(f"{column} {value!r}" for column, value in row.items()) for row in rows[:NAMED_ROWS])
    more = f" and {len(rows) - NAMED_ROWS} more" if len(rows) > NAMED_ROWS else ""
    return f" (its rows: {named}{more})"


def wrong_passage_ids(index: LiveIndex) -> Iterator[str]:
    """Yields a sentence for each passage whose id is not the hash of its title and text. Takes O(texts) time."""
    for row in range(len(index.passages)):
        passage = index.passages[row]
        if passage.id != passage_id(passage.title, passage.text):
            yield f"the passage {passage.id} in the tables has another title or text than it was written with"
