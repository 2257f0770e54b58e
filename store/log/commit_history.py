"""The state that the rows of `commits` describe: the commits, the facts about the store itself, and the sources' positions."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from store.lance.schema.commits import CommitRow
from store.lance.tables import TableView
from store.types import Calibration, EncoderIdentity, ExtractionCosts, SynonymRule

SETTLE = "settle"
"""Kind of the commit that recomputes all synonym edges."""
REENCODE = "reencode"
"""Kind of the commit that replaces the vectors by another encoder's vectors."""
STALE = "synonyms_stale"
"""Fact in a migration's row, set if the migration changed triples."""

PERMANENT_KINDS = ("create", "migrate", SETTLE, REENCODE)
"""Kinds of commits whose rows describe the store itself. Rows of these kinds are never deleted."""

FAILED_PREFIX = "failed:"
"""Prefix of the column `extractor` that marks a failed extraction in format 1: `failed:<attempts>:<error>` replaces a name."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `time` is in Unix seconds.

    `rowless_costs` are the costs of extractions without a row in `extractions`: purged extractions, and extractions that
    documents supply.
    """

    seq: int
    time: float
    rowless_costs: ExtractionCosts = field(default_factory=dict)


class CommitHistory:
    """The state that the rows of `commits` describe, up to the last added row."""

    def __init__(self, rows: Iterable[CommitRow] = ()) -> None:
        """`rows` are in commit order."""
        self.last = Commit(0, time.time())
        self.positions: dict[str, Any] = {}
        self.times: dict[int, float] = {}
        """Time of each commit in Unix seconds, in commit order."""
        self.counts: dict[int, tuple[int, int, int]] = {}
        """Number of living passages, phrases and statements as of a commit. A commit gets its entry when the next change is
        made."""
        self.horizon = 0
        """The earliest commit that is complete and can be queried; commits before it were purged."""
        self.format = 1
        self.synonym_rule = 1
        """Version of the rule that made the synonym edges (`SynonymRule.VERSION`)."""
        self.edges_rule = SynonymRule()
        """The `[graph]` settings with which the synonym edges were made; the defaults if an earlier release made the log."""
        self.synonyms_stale = False
        """Whether the synonym edges must be recomputed because a migration has changed triples."""
        self._encoder_facts: Mapping[str, Any] = {}
        for row in rows:
            self._add(row, self.positions)

    def add(self, row: CommitRow) -> None:
        """Adds the next row. Other threads may read the positions concurrently."""
        self._add(row, self.positions.copy())

    def _add(self, row: CommitRow, positions: dict[str, Any]) -> None:
        """`positions`: the positions before the row; this method updates them."""
        facts = row.facts
        costs = _rowless_costs(facts["bygone"]) if "bygone" in facts else self.last.rowless_costs
        self.last = Commit(row.seq, row.time, costs)
        self.times[row.seq] = row.time
        if "before" in facts:
            passages, phrases, statements = facts["before"]
            self.counts[row.seq - 1] = (passages, phrases, statements)
        self.horizon = max(self.horizon, facts.get("horizon", 0))
        self.format = max(self.format, int(facts.get("format", 1)))
        self.synonym_rule = max(self.synonym_rule, facts.get("synonym_rule", 1))
        if "synonym_threshold" in facts:
            self.edges_rule = SynonymRule(facts["synonym_threshold"], facts.get("synonym_variants", True))
        edges_made = row.kind in (SETTLE, REENCODE)
        self.synonyms_stale = not edges_made and (self.synonyms_stale or STALE in facts)
        if "encoder" in facts:
            self._encoder_facts = facts
        for key, value in row.positions.items():
            if value is None:
                positions.pop(key, None)
            else:
                positions[key] = value
        self.positions = positions

    @property
    def encoder(self) -> EncoderIdentity:
        """The encoder of the vectors. Raises KeyError if no row names it."""
        return EncoderIdentity(self._encoder_facts["encoder"], self._encoder_facts["dim"])

    @property
    def calibration(self) -> Calibration | None:
        """The encoder's calibration; None if no row contains it."""
        kept = self._encoder_facts.get("calibration")
        return None if kept is None else Calibration(*kept)


def _rowless_costs(written: Mapping[str, Any]) -> ExtractionCosts:
    return {
        extractor: (count, prompt, completion)
        for extractor, (count, prompt, completion) in written.items()
        if not extractor.startswith(FAILED_PREFIX)  # format 1 counted failures as an extractor
    }


def rule_facts(rule: SynonymRule) -> dict[str, Any]:
    """Returns the facts of a commit that derives all synonym edges anew, by `rule`."""
    return {
        "synonym_rule": SynonymRule.VERSION,
        "synonym_threshold": rule.threshold,
        "synonym_variants": rule.variants,
    }


def encoder_facts(encoder: EncoderIdentity, calibration: Calibration | None) -> dict[str, Any]:
    """Returns the facts of a commit after which all vectors are by `encoder`."""
    facts: dict[str, Any] = {"encoder": encoder.name, "dim": encoder.dim}
    if calibration is not None:
        facts["calibration"] = [calibration.synonym_threshold, calibration.weak_below]
    return facts


def obsolete_rows(tables: TableView, horizon: int) -> list[int]:
    """Returns the ids of the rows of `commits` that are no longer needed if commits before `horizon` cannot be queried.

    A row that contains a source's position is needed until a later row contains a position of the same source. Rows of
    `PERMANENT_KINDS` are always needed. Ignores rows that are only in the log. May run concurrently with commits.
    """
    table = tables.read_with_ids("commits", ("seq", "kind", "positions"))
    rows = sorted(zip(*(table[name].to_pylist() for name in ("seq", "kind", "positions", "_rowid")), strict=True))
    rows_with: dict[str, list[int]] = {}
    forgotten: set[str] = set()
    for seq, _, positions, _ in rows:
        for key, value in json.loads(positions).items():
            rows_with.setdefault(key, []).append(seq)
            (forgotten.discard if value is not None else forgotten.add)(key)
    needed = {seq for seq, kind, _, _ in rows if seq >= horizon or kind in PERMANENT_KINDS}
    needed |= {seqs[-1] for key, seqs in rows_with.items() if key not in forgotten}
    # If a kept row contains a position that a later row removes, that later row must be kept too.
    while more := {
        rows_with[key][-1]
        for key in forgotten
        if rows_with[key][-1] not in needed and not needed.isdisjoint(rows_with[key])
    }:
        needed |= more
    return [id for seq, _, _, id in rows if seq not in needed]
