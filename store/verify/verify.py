"""Compares the store's files with their checksums, and the memory in use with a memory built from the tables."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

from store.change.load import load_index_for_reading
from store.errors import StoreDamaged
from store.export.canonical_order import CanonicalOrder
from store.index.live_index import KINDS
from store.index.stored_contents import StoredContents
from store.index.synonyms.search import EXACT_BELOW
from store.lance.tables import TableView, open_for_reading
from store.log.mark import Mark, check_mark
from store.log.write_ahead_log import read_commits
from store.maintenance.synonym_recall import measure_recall
from store.snapshot import DocumentSnapshot, Snapshot
from store.store import Store
from store.verify.check_files import DAMAGE, check_tables, damaged_elsewhere, rows_in, wrong_passage_ids
from store.verify.compare_memories import compare_exports, compare_snapshots
from store.verify.compare_tables import ComparedVectors, compare_contents

MAX_PROBLEMS = 20
"""Maximum number of reported differences of one kind; a single fault can cause many."""

RECALL_SAMPLE_PHRASES = 500
"""Number of phrases whose synonyms are checked if there are too many phrases to check them all."""


@dataclass(slots=True)
class VerifyReport:
    """Result of the comparison as of `commit`. An intact store has no `problems`."""

    commit: int
    checked: int = 0
    """Number of table files compared with their checksums."""
    without_checksum: int = 0
    """Number of table files without a checksum; an earlier hippod wrote them."""
    lines: int = 0
    """Number of lines of the export that were compared."""
    synonym_recall: float = 1.0
    problems: list[str] = field(default_factory=list)


ReportStep = Callable[[str, int, int | None], None]
"""A callback with the step, the amount done, and the total amount (None if unknown)."""


def _no_report(_step: str, _done: int, _total: int | None) -> None:
    """A `ReportStep` that ignores the progress."""


def verify(store: Store, report: ReportStep = _no_report) -> VerifyReport:
    """Compares the current memory with one built from the tables and the log. Commits and queries continue meanwhile."""
    with store.maintenance_paused():
        with store.commits_paused() as last:
            live, contents = store.document_snapshot(), store.stored_contents()
            files = store.checksums.by_table()
            flushed = last.seq - store.unflushed_commits()
            found = VerifyReport(last.seq)
            try:
                check_mark(store.folder, Mark(flushed, store.table_versions()))
            except (StoreDamaged, OSError) as error:
                found.problems.append(str(error))
        snapshot = live.snapshot
        report("reading the files", 0, None)
        by_file = check_tables(store.folder, files, store.checksums, partial(rows_in, store.folder, snapshot.dim))
        found.checked, found.without_checksum = by_file.checked, by_file.without_checksum
        damaged = chain(by_file.problems, damaged_elsewhere(store.folder, store.checksums))
        found.problems += islice(damaged, MAX_PROBLEMS)
        try:
            tables = open_for_reading(store.folder, snapshot.dim, read_commits(store.folder, flushed + 1, last.seq))
            found.problems += _duplicate_rows(tables)
            rows = sum(map(tables.rows, KINDS))
            report("reading the tables", 0, rows)
            vectors = ComparedVectors(contents, MAX_PROBLEMS)
            index = load_index_for_reading(
                tables,
                snapshot.dim,
                lambda done: report("reading the tables", done, rows),
                vectors,
            )
        except StoreDamaged as error:
            found.problems.append(str(error))
            return found
        except DAMAGE as error:
            found.problems.append(f"the tables cannot be read: {type(error).__name__}: {error}")
            return found
        found.problems += vectors.problems
        found.problems += islice(wrong_passage_ids(index), MAX_PROBLEMS)
        report("comparing stored content", 0, None)
        found.problems += islice(compare_contents(contents, StoredContents(index)), MAX_PROBLEMS)
    anew = Snapshot(index, snapshot.commit, snapshot.time)
    by_tables = DocumentSnapshot(anew, index.documents, index.holders)
    lines = (
        snapshot.living_passages + snapshot.living_phrases + snapshot.living_statements + sum(snapshot.edges.values())
    )
    mine, theirs = CanonicalOrder(snapshot), CanonicalOrder(anew)

    def note_lines(done: int) -> None:
        found.lines = done
        report("comparing exports", done, lines)

    differences = compare_exports(mine, theirs, note_lines), compare_snapshots(live, by_tables, mine, theirs)
    for difference in chain(*differences):
        if len(found.problems) >= MAX_PROBLEMS:
            break
        found.problems.append(difference)
    report("comparing synonyms", 0, None)
    recall = measure_recall(
        snapshot, store.rule, anew.n_phrases if anew.n_phrases <= EXACT_BELOW else RECALL_SAMPLE_PHRASES
    )
    found.synonym_recall = recall.share
    if recall.missing:
        found.problems.append(f"{recall.missing} synonym edges of {recall.phrases} phrases are missing")
    return found


def _duplicate_rows(tables: TableView) -> list[str]:
    problems = []
    for name, column in (
        ("passages", "id"),
        ("passages", "row"),
        ("phrases", "text"),
        ("phrases", "row"),
        ("triples", "row"),
    ):
        values = tables.read(name, (column,))[column].combine_chunks()
        if len(values.unique()) != len(values):
            problems.append(f"the table {name} contains a {column} twice")
    return problems
