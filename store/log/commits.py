"""The commit log: makes a change of several tables atomic.

LanceDB is atomic per table. A commit appends to the tables, syncs them, and only then appends a row to `commits` with each
table's version; that row is the commit. When a store is opened, tables that are ahead of the last row are rolled back,
because the process ended before it wrote the row.
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from store.errors import EncoderMismatch, NewerFormat, OlderFormat, StoreDamaged
from store.lance.schema import FORMAT, commits
from store.lance.schema.commits import LogRow
from store.lance.tables import Tables
from store.log import migrations
from store.log.extraction_costs import add_costs
from store.log.migrated import Migrated
from store.types import Calibration, EncoderIdentity, ExtractionCosts, SynonymRule

HEAD = "head"
"""File with the last commit's number, written after the commit's row. If the log ends before that number, it has lost
commits. The file is not synced: after a power loss it may name an earlier commit, which is harmless."""

SETTLE = "settle"
"""Kind of the commit that recomputes all synonym edges."""
REENCODE = "reencode"
"""Kind of the commit that replaces the vectors by those of another encoder."""
STALE = "synonyms_stale"
"""Fact in a migration's row: the migration changed triples."""

PERMANENT_KINDS = ("create", "migrate", SETTLE, REENCODE)
"""Kinds of commits whose rows describe the store itself; these rows are never trimmed."""


def rule_facts(rule: SynonymRule) -> dict[str, Any]:
    """The facts of a commit that makes all synonym edges by `rule`."""
    return {
        "synonym_rule": SynonymRule.VERSION,
        "synonym_threshold": rule.threshold,
        "synonym_variants": rule.variants,
    }


def encoder_facts(encoder: EncoderIdentity, calibration: Calibration | None) -> dict[str, Any]:
    """The facts of a commit from which on all vectors are by `encoder`."""
    facts: dict[str, Any] = {"encoder": encoder.name, "dim": encoder.dim}
    if calibration is not None:
        facts["calibration"] = [calibration.synonym_threshold, calibration.weak_below]
    return facts


def made_by(all_facts: Sequence[Mapping[str, Any]]) -> tuple[EncoderIdentity, Calibration | None]:
    """Returns the encoder of the vectors, and its calibration if the log has one. Raises KeyError for a log without."""
    facts = next((facts for facts in reversed(all_facts) if "encoder" in facts), all_facts[0])
    kept = facts.get("calibration")
    return EncoderIdentity(facts["encoder"], facts["dim"]), None if kept is None else Calibration(*kept)


def change_positions(kept: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Applies a commit's positions to those before it. None removes a position."""
    for key, value in changes.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = value


def edges_rule(all_facts: Sequence[Mapping[str, Any]]) -> SynonymRule:
    """What the last of such commits says; the defaults if none does, as in a log of an earlier release."""
    made = [facts for facts in all_facts if "synonym_threshold" in facts]
    if not made:
        return SynonymRule()
    return SynonymRule(made[-1]["synonym_threshold"], made[-1].get("synonym_variants", True))


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit. `time` is in Unix seconds.

    `rowless_costs` are the costs of extractions without a row in `extractions`: purged ones, and those that documents
    supply.
    """

    seq: int
    time: float
    versions: Mapping[str, int] = field(default_factory=dict)
    rowless_costs: ExtractionCosts = field(default_factory=dict)


class CommitLog:
    """Reads the log at opening and appends to it."""

    def __init__(
        self,
        tables: Tables,
        encoder: EncoderIdentity,
        rule: SynonymRule | None = None,
        calibration: Calibration | None = None,
        before_migration: Callable[[int, int, float], object] = lambda _format, _commit, _time: None,
    ) -> None:
        """`rule` and `calibration` are written into a new log. `before_migration` is called with the format, number and time
        of the last commit before the log migrates an older store; an error stops the migration."""
        self._tables = tables
        self.positions: dict[str, Any] = {}
        self.times: dict[int, float] = {}
        """Time of each commit in Unix seconds, in commit order."""
        self.counts: dict[int, tuple[int, int, int]] = {}
        """Number of live passages, phrases and triples at a commit. Known only for commits that are followed by a change."""
        self.horizon = 0
        """The earliest complete commit. It and later commits can be queried; earlier ones were purged."""
        self.format = FORMAT
        """Format of the store when it was opened; opening migrates it to this version's format."""
        self.synonym_rule = SynonymRule.VERSION
        """Version of the rule that made the synonym edges (`SynonymRule.VERSION`)."""
        self.edges_rule = SynonymRule()
        """The `[graph]` settings with which the synonym edges were made; the defaults in a log of an earlier release."""
        self.synonyms_stale = False
        """Whether the synonym edges must be recomputed because a migration has changed triples."""
        rows = commits.from_table(tables.read("commits"))
        all_facts = [row.facts for row in rows]
        for row in rows:
            self.times[row.seq] = row.time
            self.horizon = max(self.horizon, row.facts.get("horizon", 0))
            self._read_counts(row.seq, row.facts)
            change_positions(self.positions, row.positions)
            edges_made = row.kind in (SETTLE, REENCODE)
            self.synonyms_stale = not edges_made and (self.synonyms_stale or STALE in row.facts)
        if rows:
            self.format = migrations.format_of(all_facts)
            self.synonym_rule = max(facts.get("synonym_rule", 1) for facts in all_facts)
            self.edges_rule = edges_rule(all_facts)
            self._check_identity(all_facts, encoder)
            last = rows[-1]
            rowless_costs: Mapping[str, Any] = next(
                (each["bygone"] for each in reversed(all_facts) if "bygone" in each), {}
            )
            self.last = Commit(
                last.seq,
                last.time,
                last.versions,
                {
                    extractor: (count, prompt, completion)
                    for extractor, (count, prompt, completion) in rowless_costs.items()
                    if not extractor.startswith(migrations.FAILED_PREFIX)  # format 1 counted failures as an extractor
                },
            )
            self._check_head()
            self.rolled_back = self._roll_back()
            if self.format < FORMAT:
                before_migration(self.format, self.last.seq, self.last.time)
                self._migrate()
        else:
            self.rolled_back = []
            self.last = Commit(0, time.time())
            self.edges_rule = rule or SynonymRule()
            facts = {"format": FORMAT} | encoder_facts(encoder, calibration) | rule_facts(self.edges_rule)
            self.append("create", {}, facts)

    def _check_identity(self, all_facts: Sequence[Mapping[str, Any]], encoder: EncoderIdentity) -> None:
        if self.format > FORMAT:
            raise NewerFormat(
                f"the store {self._tables.folder} has format {self.format}, this hippod reads up to {FORMAT}; "
                "upgrade hippod, or set another [store] path"
            )
        if missing := [step for step in range(self.format, FORMAT) if step not in migrations.STEPS]:
            raise OlderFormat(
                f"the store {self._tables.folder} has format {self.format}, and this hippod has no step from format "
                f"{missing[0]} to {missing[0] + 1}; open it once with a version that has, which the changelog names"
            )
        found, _ = made_by(all_facts)
        if found != encoder:
            raise EncoderMismatch(
                f"the vectors of the store {self._tables.folder} are by the encoder {found.name} ({found.dim} dimensions), "
                f"which {encoder.name} ({encoder.dim}) cannot read; start with `hippod --reencode` to encode the content anew"
            )

    def _check_head(self) -> None:
        head = self._tables.folder / HEAD
        written = head.read_text() if head.exists() else ""
        if written.isdigit() and int(written) > self.last.seq:
            raise StoreDamaged(
                f"the store {self._tables.folder} made commit {written} and its log ends with {self.last.seq}; "
                "restore it from a backup with `hippod --restore DIR`, or, to go on from the older commit, delete the "
                f"file {head}"
            )

    def _roll_back(self) -> list[str]:
        behind: list[str] = []
        ahead: list[str] = []
        for name, version in self.last.versions.items():
            now = self._tables.version(name)
            if now > version:
                ahead.append(name)
            elif now < version:
                behind.append(f"{name} (version {now}, committed {version})")
        if behind:
            raise StoreDamaged(
                f"the store {self._tables.folder} lacks data of its last commit {self.last.seq} in: "
                f"{', '.join(behind)}; restore it from a backup"
            )
        for name in ahead:
            self._tables.roll_back(name, self.last.versions[name], self.last.seq)
        if ahead:
            self.append("recover", {})
        return ahead

    def _read_counts(self, seq: int, facts: Mapping[str, Any]) -> None:
        """Stores the counts of the commit before `seq`: each commit's facts contain the counts before it."""
        if "before" in facts:
            passages, phrases, triples = facts["before"]
            self.counts[seq - 1] = (passages, phrases, triples)

    def _migrate(self) -> None:
        """Migrates the store to this version's format, with one commit per step."""
        for step in range(self.format, FORMAT):
            # The checkpoint was derived from the old tables and does not match the new ones.
            for derived in self._tables.folder.glob("snapshot-*"):
                shutil.rmtree(derived)
            done = migrations.STEPS[step](self._tables) or Migrated()
            # This version cannot read the format of earlier commits, so they cannot be queried.
            self.horizon = self.last.seq + 1
            self.synonyms_stale |= done.triples_changed
            facts = {"format": step + 1, "horizon": self.horizon} | ({STALE: True} if done.triples_changed else {})
            costs = add_costs(self.last.rowless_costs, done.deleted_costs) if done.deleted_costs else None
            self.append("migrate", {}, facts, costs)

    def commit_at(self, moment: float) -> int | None:
        """Returns the last commit made at or before `moment` (Unix seconds), or None."""
        found, last = None, self.last.time
        # A copy, because a commit may be added concurrently.
        for seq, at in self.times.copy().items():
            if at > last:
                continue  # made while the clock was ahead; the clock has been set back since
            if at > moment:
                break
            found = seq
        return found

    def obsolete_rows(self, horizon: int) -> list[int]:
        """Returns the ids of log rows that are no longer needed if commits before `horizon` cannot be queried.

        A row with a source's position is needed until a later row has that source's position. Rows of `PERMANENT_KINDS` are
        always needed. May run concurrently with commits.
        """
        table = self._tables.read_with_ids("commits", ("seq", "kind", "positions"))
        rows = sorted(zip(*(table[name].to_pylist() for name in ("seq", "kind", "positions", "_rowid")), strict=True))
        rows_with: dict[str, list[int]] = {}
        forgotten: set[str] = set()
        for seq, _, positions, _ in rows:
            for key, value in json.loads(positions).items():
                rows_with.setdefault(key, []).append(seq)
                (forgotten.discard if value is not None else forgotten.add)(key)
        needed = {seq for seq, kind, _, _ in rows if seq >= horizon or kind in PERMANENT_KINDS}
        needed |= {seqs[-1] for key, seqs in rows_with.items() if key not in forgotten}
        # A kept row may contain another position that was removed later: then the row with the removal must be kept too.
        while more := {
            rows_with[key][-1]
            for key in forgotten
            if rows_with[key][-1] not in needed and not needed.isdisjoint(rows_with[key])
        }:
            needed |= more
        return [id for seq, _, _, id in rows if seq not in needed]

    def forget_before(self, horizon: int) -> None:
        """Drops the times and counts of commits before `horizon`. The caller holds the write lock."""
        self.horizon = max(self.horizon, horizon)
        self.times = {seq: at for seq, at in self.times.items() if seq >= self.horizon}
        self.counts = {seq: counts for seq, counts in self.counts.items() if seq >= self.horizon}

    def append(
        self,
        kind: str,
        positions: Mapping[str, Any],
        facts: Mapping[str, Any] | None = None,
        rowless_costs: ExtractionCosts | None = None,
    ) -> Commit:
        """Commits the current content of the tables. When this returns, the commit survives a power loss.

        `rowless_costs` are written into the row if the commit changes them or deletes the row that contained them.
        """
        facts = {**(facts or {}), **({} if rowless_costs is None else {"bygone": rowless_costs})}
        versions = self._tables.versions()
        changed = [name for name, version in versions.items() if self.last.versions.get(name) != version]
        self._tables.sync(changed)
        commit = Commit(
            self.last.seq + 1,
            time.time(),
            versions,
            self.last.rowless_costs if rowless_costs is None else rowless_costs,
        )
        row = LogRow(commit.seq, commit.time, kind, versions, positions, facts)
        before = self._tables.version("commits")
        try:
            self._tables.append("commits", commits.to_columns(row))
            self._tables.sync(["commits"])
        except BaseException:
            # The commit is not acknowledged, so its row must not remain: the next commit gets the same number.
            if self._tables.version("commits") != before:
                self._tables.roll_back("commits", before, self.last.seq)
            raise
        with suppress(OSError):  # the commit is valid; on a full disk the file keeps an earlier number or is missing
            (self._tables.folder / HEAD).write_text(str(commit.seq))
        self.last = commit
        self.times[commit.seq] = commit.time
        self._read_counts(commit.seq, facts)
        change_positions(self.positions, positions)
        return commit
