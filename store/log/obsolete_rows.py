"""The rows of the table `commits` that say nothing about the present or a commit that is kept."""

import json

from store.lance.tables import TableView
from store.log.commit_facts import PERMANENT_KINDS


def obsolete_rows(tables: TableView, horizon: int) -> list[int]:
    """Returns the ids of log rows that are no longer needed if commits before `horizon` cannot be queried.

    A row with a source's position is needed until a later row has that source's position. Rows of `PERMANENT_KINDS` are
    always needed. Rows that are only in the log are not considered. May run concurrently with commits.
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
    # A kept row may contain another position that was removed later: then the row with the removal must be kept too.
    while more := {
        rows_with[key][-1]
        for key in forgotten
        if rows_with[key][-1] not in needed and not needed.isdisjoint(rows_with[key])
    }:
        needed |= more
    return [id for seq, _, _, id in rows if seq not in needed]
