"""Reads a summary of the log without opening the store: for checks, and for a start while the model server is unavailable."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.lance.layout import table_folder
from store.lance.tables import read_unopened
from store.log.commit_facts import change_positions, edges_rule, made_by
from store.log.log_files import read_records
from store.log.migrations import format_of
from store.types import Calibration, EncoderIdentity, SynonymRule

EARLIER_CALIBRATION = Calibration(SynonymRule().threshold, None)
"""Of a store of an earlier release, which kept none: what it used for every encoder."""


@dataclass(frozen=True, slots=True)
class LogSummary:
    """Summary of a log. `commit` is the last commit, `time` its time in Unix seconds."""

    encoder: EncoderIdentity
    format: int
    commit: int
    time: float
    edges_rule: SynonymRule
    """The `[graph]` settings that the synonym edges were made with."""
    calibration: Calibration
    positions: Mapping[str, Any]
    """The sources' positions, and the settings that the store keeps, as of the last commit."""


def summarize_log(folder: Path) -> LogSummary:
    """Summarises the log of the store in `folder`. Raises OSError, RuntimeError, ValueError or KeyError if the log cannot
    be read; opening the store gives an error that says what to do."""
    columns = ("seq", "time", "facts", "positions")
    rows = read_unopened(folder, "commits", columns).sort_by("seq").to_pylist()
    for record in read_records(folder):
        if rows and record.commit > rows[-1]["seq"]:
            rows += record.rows["commits"].select(columns).to_pylist()
    if not rows:
        raise ValueError(f"the log of {folder} has no commits")
    facts = [json.loads(row["facts"]) for row in rows]
    encoder, calibration = made_by(facts)
    at = int(rows[-1]["seq"]), float(rows[-1]["time"])
    positions: dict[str, Any] = {}
    for row in rows:
        change_positions(positions, json.loads(row["positions"]))
    return LogSummary(encoder, format_of(facts), *at, edges_rule(facts), calibration or EARLIER_CALIBRATION, positions)


def summary_of_store(folder: Path) -> LogSummary | None:
    """None where there is no store yet, or one that cannot be read."""
    if not table_folder(folder, "commits").is_dir():
        return None
    try:
        return summarize_log(folder)
    except (OSError, RuntimeError, ValueError, KeyError):
        return None


def encoder_of_store(folder: Path) -> EncoderIdentity | None:
    """Returns the encoder of the store in `folder`, or None if there is no store or its log cannot be read."""
    summary = summary_of_store(folder)
    return None if summary is None else summary.encoder
