"""A handle of a LanceDB table that caches its version, because a commit needs the version of every table."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa


class VersionedTable:
    """The operations of the store on a table. Writes return the new version, so that it need not be looked up in Lance (0.2
    ms)."""

    def __init__(self, table: Any, note_written: Callable[[int | None], object]) -> None:
        """`note_written` is called after each change, with the version that an append created, or None."""
        self._table = table
        self._note_written = note_written
        self._version: int | None = None
        """None if the version must be looked up."""

    @property
    def version(self) -> int:
        if self._version is None:
            self._version = int(self._table.version)
        return self._version

    @property
    def schema(self) -> pa.Schema:
        return self._table.schema

    def add(self, rows: pa.Table) -> None:
        self._version = None  # after a failure the version must be looked up
        try:
            self._version = int(self._table.add(rows).version)
        finally:
            self._note_written(self._version)

    def delete(self, condition: str) -> None:
        """Deletes the rows for which `condition` (SQL) holds."""
        self._changed()
        self._version = int(self._table.delete(condition).version)

    def restore(self, version: int) -> None:
        """Restores the content of `version` as a new version."""
        self._changed()
        self._table.restore(version)

    def checkout_latest(self) -> None:
        self._changed()
        self._table.checkout_latest()

    def _changed(self) -> None:
        self._version = None
        self._note_written(None)

    def search(self) -> Any:
        return self._table.search()

    def to_arrow(self) -> pa.Table:
        return self._table.to_arrow()

    def count_rows(self) -> int:
        return int(self._table.count_rows())

    def count_fragments(self) -> int:
        return int(self._table.stats()["fragment_stats"]["num_fragments"])
