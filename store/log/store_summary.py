"""Reads a summary of the log without opening the store, for checks and for a start without the model server."""

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from store.errors import StoreDamaged
from store.lance.layout import table_folder
from store.lance.schema import commits
from store.lance.schema.commits import CommitRow
from store.lance.tables import read_unopened
from store.lance.versions import newest_readable
from store.log.commit_history import CommitHistory
from store.log.mark import is_stale, read_mark
from store.log.write_ahead_log import read_records
from store.types import Calibration, EncoderIdentity, SynonymRule

EARLIER_CALIBRATION = Calibration(SynonymRule().threshold, None)
"""The calibration of stores from a release that recorded none; that release used this calibration for every encoder."""


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """Summary of a log. `commit` is the number of the last commit, `time` its time in Unix seconds."""

    encoder: EncoderIdentity
    format: int
    commit: int
    time: float
    edges_rule: SynonymRule
    """The `[graph]` settings with which the synonym edges were made."""
    calibration: Calibration
    positions: Mapping[str, Any]
    """The sources' positions and the settings stored with them, as of the last commit."""


class NoCommits(ValueError):
    """The store's first opening was interrupted. The next opening starts again."""


def summarize_store(folder: Path) -> StoreSummary:
    """Summarises the log of the store in `folder`. Raises NoCommits, or, if the log cannot be read, StoreDamaged, OSError,
    RuntimeError, ValueError or KeyError. Opening the store then gives an error that says what to do."""
    rows = _rows(folder)
    if not rows:
        error = NoCommits if read_mark(folder) is None else StoreDamaged
        raise error(f"the log of {folder} has no commits")
    found = CommitHistory(rows)
    calibration = found.calibration or EARLIER_CALIBRATION
    last = found.last
    return StoreSummary(
        found.encoder, found.format, last.seq, last.time, found.edges_rule, calibration, found.positions
    )


def _rows(folder: Path) -> list[CommitRow]:
    """Returns the rows of `commits`, in commit order. Repeats the reading if the mark changed meanwhile. While the mark is
    unchanged, log files with later commits are not deleted."""
    while True:
        mark = read_mark(folder)
        try:
            stale = mark is not None and is_stale(folder, mark)  # the log of a newer hippod, before a downgrade
            version = None if mark is None or stale else mark.versions["commits"]
            rows = commits.from_table(_read_commits(folder, version))
            for record in [] if stale else read_records(folder):
                if rows and record.commit > rows[-1].seq:
                    rows += commits.from_table(record.rows["commits"])
        except (OSError, RuntimeError, ValueError):
            if read_mark(folder) == mark:
                raise
        else:
            if read_mark(folder) == mark:
                return rows


def _read_commits(folder: Path, version: int | None) -> pa.Table:
    """Reads `commits` at a version; at the newest version if `version` is None.

    After a power loss, the newest version may be incomplete until an opening drops it. If it is incomplete, a copy without it
    is read, because another process may have the store open.
    """

    def read(store: Path) -> pa.Table:
        return read_unopened(store, "commits", commits.SCHEMA.names, version)

    try:
        return read(folder)
    except (OSError, RuntimeError, ValueError) as error:
        with tempfile.TemporaryDirectory() as copy, suppress(OSError, RuntimeError, ValueError):
            shutil.copytree(table_folder(folder, "commits"), table_folder(Path(copy), "commits"))
            newest_readable(Path(copy), "commits", lambda: read(Path(copy)))
            return read(Path(copy))
        raise error


def summary_of_store(folder: Path) -> StoreSummary | None:
    """Returns the summary of the store in `folder`; None if there is no store or its log cannot be read."""
    if not table_folder(folder, "commits").is_dir():
        return None
    try:
        return summarize_store(folder)
    except (StoreDamaged, OSError, RuntimeError, ValueError, KeyError):
        return None


def encoder_of_store(folder: Path) -> EncoderIdentity | None:
    """Returns the encoder of the store in `folder`, or None if there is no store or its log cannot be read."""
    summary = summary_of_store(folder)
    return None if summary is None else summary.encoder
