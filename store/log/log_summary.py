"""What the log says of a store, read without opening the store: for checks, and for a model server that is away at a start."""

import json
from dataclasses import dataclass
from pathlib import Path

from store.lance.layout import table_folder
from store.lance.tables import read_unopened
from store.log.migrations import format_of
from store.types import EncoderIdentity


@dataclass(frozen=True, slots=True)
class LogSummary:
    """`time` is that of the last commit, in Unix seconds."""

    encoder: EncoderIdentity
    format: int
    commit: int
    time: float


def summarize_log(folder: Path) -> LogSummary:
    """Raises OSError, RuntimeError, ValueError or KeyError where the log cannot be read: opening the store says what to do."""
    rows = read_unopened(folder, "commits", ("seq", "time", "facts")).sort_by("seq").to_pylist()
    if not rows:
        raise ValueError(f"the log of {folder} has no commits")
    facts = [json.loads(row["facts"]) for row in rows]
    encoder = EncoderIdentity(facts[0]["encoder"], facts[0]["dim"])
    return LogSummary(encoder, format_of(facts), int(rows[-1]["seq"]), float(rows[-1]["time"]))


def encoder_of_store(folder: Path) -> EncoderIdentity | None:
    """The encoder that the store in `folder` was made with; None where there is no store yet, or one that cannot be read."""
    if not table_folder(folder, "commits").is_dir():
        return None
    try:
        return summarize_log(folder).encoder
    except (OSError, RuntimeError, ValueError, KeyError):
        return None
