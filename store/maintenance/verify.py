"""Everything derived once more from the tables, and compared with what the memory answers from."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest

import numpy as np

from store.checkpoint.checkpoint import KINDS
from store.document_snapshot import Pinned
from store.export.json_lines import export_lines
from store.index.load import load_image
from store.index.synonym_recall import synonym_recall
from store.index.synonyms import EXACT_BELOW
from store.lance.tables import Tables
from store.maintenance.contents import Contents, unlike
from store.maintenance.divergence import disagreements
from store.snapshot import Snapshot
from store.store import Store

SHOWN = 20
"""Differences that are told of; one fault makes many."""

SAMPLE = 500
"""Phrases whose synonyms are searched for exactly where there are too many to do it for all."""


@dataclass(slots=True)
class Verified:
    """What was found at `commit`; no `problems` is what should be found."""

    commit: int
    lines: int = 0
    """Lines of the export that were compared."""
    synonym_recall: float = 1.0
    problems: list[str] = field(default_factory=list)


def verify(store: Store) -> Verified:
    """Compares the present memory with one built anew from the tables. Commits and queries go on meanwhile."""
    with store.undisturbed():
        with store.between_commits():
            live, contents = store.pinned(), store.contents()
        snapshot = live.snapshot
        tables = Tables(store.folder, snapshot.dim, mend=False)
        found = Verified(snapshot.commit)
        try:
            found.problems += _repeated(tables)
            image = load_image(tables, snapshot.dim, store.rule.cap, snapshot.commit)
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            found.problems.append(f"the tables cannot be read: {type(error).__name__}: {error}")
            return found
        found.problems += islice(unlike(contents, Contents(image)), SHOWN)
    anew = Snapshot(image, snapshot.commit, snapshot.time)
    by_tables = Pinned(anew, image.documents, image.users)
    for difference in chain(_differences(snapshot, anew, found), disagreements(live, by_tables)):
        if len(found.problems) >= SHOWN:
            break
        found.problems.append(difference)
    for name in KINDS:
        vectors = getattr(anew, f"{name[:-1]}_vectors")
        for start, block in vectors.blocks():
            lengths = np.linalg.norm(block, axis=1)
            # The zero vector is that of a text of which the encoder knows nothing.
            if not np.isfinite(lengths).all() or ((np.abs(lengths - 1) > 1e-3) & (lengths != 0)).any():
                found.problems.append(f"vectors of {name} from row {start} on are neither of length 1 nor zero")
    recall = synonym_recall(snapshot, store.rule, anew.n_phrases if anew.n_phrases <= EXACT_BELOW else SAMPLE)
    found.synonym_recall = recall.share
    if recall.missing:
        found.problems.append(f"{recall.missing} synonym edges of {recall.phrases} phrases are not there")
    return found


def _repeated(tables: Tables) -> list[str]:
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
            problems.append(f"the table {name} holds a {column} twice")
    return problems


def _differences(live: Snapshot, anew: Snapshot, found: Verified) -> Iterator[str]:
    for mine, theirs in zip_longest(export_lines(live), export_lines(anew)):
        found.lines += 1
        if mine != theirs:
            yield f"in memory {mine}, by the tables {theirs}"
