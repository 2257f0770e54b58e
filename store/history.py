"""What may be forgotten for good: rows that no commit within the kept time needs.

Rows of `documents` and `synonyms` that a later row replaced, passages that only such rows hold, earlier readings of
passages that were read again, and the triples, phrases and extractions that only such passages and readings have.
What was deleted is out of every answer at once; this takes it off the disk.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.image import Delta, Image
from store.tables import Tables
from store.types import State

TOGETHER = 2_000
"""Rows that one delete names: some 20 ms."""


@dataclass(frozen=True, slots=True)
class Purge:
    """Row ids of the tables to delete, and rows of the image to forget."""

    tables: dict[str, list[int]] = field(default_factory=dict)
    passages: list[int] = field(default_factory=list)
    phrases: list[int] = field(default_factory=list)
    triples: list[int] = field(default_factory=list)

    def slices(self) -> Iterator[tuple[str, list[int]]]:
        """(table, row ids), a few thousand at a time."""
        for name, ids in self.tables.items():
            for start in range(0, len(ids), TOGETHER):
                yield name, ids[start : start + TOGETHER]

    def __len__(self) -> int:
        return sum(map(len, self.tables.values()))


class Touched:
    """What lives as a purge is begun to be planned, and what commits take up while that goes on."""

    def __init__(self, image: Image) -> None:
        """For the writer to call, between two commits."""
        self.passage_counts = image.passage_counts.view().array()
        self.phrase_counts = image.phrase_counts.view().array()
        self.triple_counts = image.triple_counts.view().array()
        self.ends = image.triple_ends.view()
        self.ids = image.ids["phrases"].view()
        self.extracted = list(image.extracted)
        self.lost = False
        """Whether something was taken up that is not known: rows have other numbers now."""
        self._passages: set[int] = set()
        self._phrases: set[int] = set()
        self._triples: set[int] = set()

    def note(self, delta: Delta, image: Image) -> None:
        """A commit's change, once it is applied."""
        self._passages.update(delta.users, delta.extracted)
        stated = {*delta.triple_changes, *(row for rows in delta.extracted.values() for row in rows.tolist())}
        self._triples |= stated
        self._phrases.update(delta.phrase_changes, image.triple_ends.view()[sorted(stated)].ravel().tolist())

    def meets(self, purge: "Purge") -> bool:
        """Whether a commit has taken up something that `purge` is to take away."""
        return self.lost or not (
            self._passages.isdisjoint(purge.passages)
            and self._phrases.isdisjoint(purge.phrases)
            and self._triples.isdisjoint(purge.triples)
        )


def plan_purge(tables: Tables, image: Image, horizon: int, begun: Touched) -> Purge:
    """What nobody needs who looks at `horizon` or a later commit. Runs beside commits: `begun.meets` says if it holds."""
    documents = tables.read_with_ids("documents", ("uri", "state", "commit", "passages"))
    drop = _replaced(
        documents["uri"].to_pylist(),
        documents["commit"].to_pylist(),
        [state == State.REMOVED.value for state in documents["state"].to_pylist()],
        horizon,
    )
    synonyms = tables.read_with_ids("synonyms", ("a", "b", "score", "commit"))
    pairs = _replaced(
        list(zip(synonyms["a"].to_pylist(), synonyms["b"].to_pylist(), strict=True)),
        synonyms["commit"].to_pylist(),
        [score == 0 for score in synonyms["score"].to_pylist()],
        horizon,
    )
    dropped = set(drop)
    kept = _held(image, (text for i, text in enumerate(documents["passages"].to_pylist()) if i not in dropped))
    read = tables.read_with_ids("extractions", ("passage", "commit"))
    readings = read["passage"].to_pylist()
    outdated = _replaced(readings, read["commit"].to_pylist(), [False] * len(readings), horizon)
    kept[1].update(_superseded(tables, image, read, set(outdated)))
    passages, phrases, triples = _dead(image, begun, *kept)
    names = {image.passages[row].id for row in passages}
    outdated += [i for i in set(range(len(readings))).difference(outdated) if readings[i] in names]
    return Purge(
        {
            "documents": _ids(documents, drop),
            "synonyms": _ids(synonyms, pairs),
            "passages": _matching(tables, "passages", "id", names),
            "extractions": _ids(read, outdated),
            "triples": _triple_ids(tables, image, begun, triples),
            "phrases": _matching(tables, "phrases", "row", {int(begun.ids[row]) for row in phrases}),
        },
        passages,
        phrases,
        triples,
    )


def _superseded(tables: Tables, image: Image, read: Any, dropped: set[int]) -> set[int]:
    """Rows of the triples that an earlier reading found of a passage which was read again since, where somebody may still look
    back at that. `dropped` are indices into `read`, the rows of `extractions`."""
    passages, commits = read["passage"].to_pylist(), read["commit"].to_pylist()
    last: dict[str, int] = {}
    for i in sorted(range(len(commits)), key=commits.__getitem__):
        last[passages[i]] = i
    earlier = [i for i in range(len(commits)) if last[passages[i]] != i and i not in dropped]
    found: set[int] = set()
    ids = _ids(read, earlier)
    for start in range(0, len(ids), TOGETHER):
        part = tables.read_by_id("extractions", ("triples",), ids[start : start + TOGETHER])
        for triples in part["triples"].to_pylist():
            found.update(_rows_of(image, triples))
    return found


def _replaced(keys: Sequence[Any], commits: Sequence[int], ends: Sequence[bool], horizon: int) -> list[int]:
    """Indices of rows up to `horizon` that a later row up to `horizon` replaces, or with which their key ended."""
    last: dict[Any, int] = {}
    replaced: list[int] = []
    for i in sorted(range(len(commits)), key=commits.__getitem__):
        if commits[i] > horizon:
            break
        before = last.get(keys[i])
        if before is not None:
            replaced.append(before)
        last[keys[i]] = i
    return sorted([*replaced, *(i for i in last.values() if ends[i])])


def _held(image: Image, references: Iterable[str]) -> tuple[set[int], set[int]]:
    """Rows of the passages that kept rows of `documents` refer to, and of the triples that they give."""
    passages: set[int] = set()
    triples: set[int] = set()
    for text in references:
        for passage, _, given in json.loads(text):
            row = image.passage_rows.get(passage)
            if row is not None:
                passages.add(row)
            triples.update(_rows_of(image, given or ()))
    return passages, triples


def _rows_of(image: Image, triples: Iterable[Sequence[str]]) -> Iterator[int]:
    """The rows of those that are known."""
    for subject, predicate, object_ in triples:
        key = (image.phrase_rows.get(subject, -1), predicate, image.phrase_rows.get(object_, -1))
        row = image.triple_rows.get(key)
        if row is not None:
            yield row


def _dead(image: Image, begun: Touched, held: set[int], given: set[int]) -> tuple[list[int], list[int], list[int]]:
    """Rows of passages, phrases and triples that neither live nor belong to a passage that is held.

    Rows that came since it was begun are not looked at. Dictionaries are copied in one call: the writer may add to them.
    """
    living = begun.passage_counts > 0
    passages = [row for row in list(image.passage_rows.values()) if row < len(living) and not living[row]]
    passages = [row for row in passages if row not in held]
    wanted = begun.triple_counts > 0
    wanted[[row for row in given if row < len(wanted)]] = True
    for row, found in enumerate(begun.extracted):
        if found is not None and (living[row] or row in held):
            wanted[found[found < len(wanted)]] = True
    triples = [row for row in list(image.triple_rows.values()) if row < len(wanted) and not wanted[row]]
    used: NDArray[np.bool_] = begun.phrase_counts > 0
    used[begun.ends[wanted].ravel()] = True
    phrases = [row for row in list(image.phrase_rows.values()) if row < len(used) and not used[row]]
    return passages, phrases, triples


def _ids(table: Any, indices: Sequence[int]) -> list[int]:
    ids = table["_rowid"].to_pylist()
    return [ids[i] for i in indices]


def _matching(tables: Tables, name: str, column: str, wanted: set[Any]) -> list[int]:
    if not wanted:
        return []
    table = tables.read_with_ids(name, (column,))
    return [
        id for id, value in zip(table["_rowid"].to_pylist(), table[column].to_pylist(), strict=True) if value in wanted
    ]


def _triple_ids(tables: Tables, image: Image, begun: Touched, triples: Sequence[int]) -> list[int]:
    if not triples:
        return []
    ids, ends = begun.ids, begun.ends
    wanted = {(int(ids[ends[row, 0]]), image.predicates[row], int(ids[ends[row, 1]])) for row in triples}
    table = tables.read_with_ids("triples", ("subject", "predicate", "object"))
    keys = zip(*(table[name].to_pylist() for name in ("subject", "predicate", "object")), strict=True)
    return [id for id, key in zip(table["_rowid"].to_pylist(), keys, strict=True) if key in wanted]
