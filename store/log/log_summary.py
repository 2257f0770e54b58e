"""Reads a summary of the log without opening the store: for checks, and for a start while the model server is unavailable."""

import json
from dataclasses import dataclass
from pathlib import Path

from store.lance.layout import table_folder
from store.lance.tables import read_unopened
from store.log.migrations import format_of
from store.types import EncoderIdentity


@dataclass(frozen=True, slots=True)
class LogSummary:
    """Summary of a log. `commit` is the last commit, `time` its time in Unix seconds."""

    encoder: EncoderIdentity
    format: int
    commit: int
    time: float


def summarize_log(folder: Path) -> LogSummary:
    """Summarises the log of the store in `folder`. Raises OSError, RuntimeError, ValueError or KeyError if the log cannot
    be read; opening the store gives an error that says what to do."""
    rows = read_unopened(folder, "commits", ("seq", "time", "facts")).sort_by("seq").to_pylist()
    if not rows:
        raise ValueError(f"the log of {folder} has no commits")
    facts = [json.loads(row["facts"]) for row in rows]
    encoder = EncoderIdentity(facts[0]["encoder"], facts[0]["dim"])
    return LogSummary(encoder, format_of(facts), int(rows[-1]["seq"]), float(rows[-1]["time"]))


def encoder_of_store(folder: Path) -> EncoderIdentity | None:
    """Returns the encoder of the store in `folder`, or None if there is no store or its log cannot be read."""
    if not table_folder(folder, "commits").is_dir():
        return None
    try:
        return summarize_log(folder).encoder
    except (OSError, RuntimeError, ValueError, KeyError):
        return None
