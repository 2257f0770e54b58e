"""Synonym edges, kept up as phrases come and go.

Two phrases are a pair when their cosine reaches the threshold (HippoRAG, section 2.2: "synonymy edges"), neither is crowded
(`store.index.synonyms.crowding`), and they differ in more than numbers (`store.index.synonyms.numbers`). A pair is an edge
when one of the two counts the other among its `cap` nearest, ties going to the smaller text. That depends on which phrases
live and on nothing else, so any order of arrival ends in the same edges.

The graph is the only record. A phrase's nearest are the `cap` nearest of its edges: what it counts among its nearest is an
edge, and an edge that only the other end asks for is farther away than all of them. A phrase with fewer edges than `cap` has
no other pairs. One with `cap` or more is searched for again when one of its nearest goes, because somebody who was not an
edge moves up.

Pairs are looked at some at a time, and of each phrase no more than its nearest `cap` stay
(`store.index.synonyms.nearest_pairs`). So a change takes memory for `cap` pairs of each phrase that it concerns, however many
pairs there are.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from store.index.synonyms.changed_flags import among
from store.index.synonyms.nearest_pairs import NO_PAIRS, Nearest, Rows, Scored, needed
from store.index.synonyms.search import Needs, Wanted


@dataclass(slots=True)
class SynonymChange:
    """What one commit does to the synonym edges: the new `weights` of pairs (a < b; 0 = no longer an edge), the old ones
    beside. Arrays of one length."""

    a: Rows = field(default_factory=lambda: NO_PAIRS[0])
    b: Rows = field(default_factory=lambda: NO_PAIRS[1])
    weights: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])
    before: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])
    rows: Rows = field(default_factory=lambda: NO_PAIRS[0])
    needs: NDArray[np.float64] = field(default_factory=lambda: NO_PAIRS[2])
    """What each of `rows` needs from now on: `SynonymPlanner.needs`."""


@dataclass(frozen=True, slots=True)
class _OthersHear:
    """What each row needs; those that are `asked` for themselves do not want to know. Worked out where it is looked at."""

    asked: Rows
    """In order, each once."""
    needs: Needs

    def __getitem__(self, part: slice, /) -> NDArray[np.float32]:
        out = np.array(self.needs[part])
        first, end = np.searchsorted(self.asked, [part.start, part.stop])
        out[self.asked[first:end] - part.start] = np.inf
        return out


@dataclass(frozen=True, slots=True)
class SynonymPlanner:
    """Works out a `SynonymChange` without touching the live state, which it reads through the given functions.

    `edges(rows)` gives all present edges of known rows; `search(rows, wanted)` the wanted pairs of `rows` as they are after
    the change, some at a time. There are `n` rows. `needs`: by row, the cosine that a pair needs to be among its nearest, that
    of its farthest where it has `cap`, else 0; shape (n,).
    """

    cap: int
    n: int
    text: Callable[[int], str]
    edges: Callable[[Rows], Scored]
    search: Callable[[Rows, Wanted], Iterable[Scored]]
    needs: Needs

    def plan(self, died: Rows, born: Rows) -> SynonymChange:
        """`died` and `born`: rows that can no longer have synonyms, and that can from now on; each in order."""
        ended = self.edges(died)
        bereft = self._bereft(died, ended[1])
        searched = np.union1d(born, bereft)
        nearest = Nearest(self.cap, self.text)
        nobody = np.broadcast_to(np.float32(np.inf), (self.n,))
        for a, b, scores in self.search(bereft, Wanted(self.cap, nobody)) if len(bereft) else ():
            nearest.add(a, b, scores)
        # Those that are not searched for themselves hear of the newborn from them.
        others = _OthersHear(searched, self.needs)
        for a, b, scores in self.search(born, Wanted(self.cap, others)) if len(born) else ():
            nearest.add(a, b, scores)
            back = ~among(b, searched)
            nearest.add(b[back], a[back], scores[back])
        concerned = np.union1d(searched, nearest.pairs()[0])
        present = self.edges(concerned)
        before = self._without(died, self._cut(present))
        older = ~among(before[0], searched)
        nearest.add(before[0][older], before[1][older], before[2][older])
        after = nearest.pairs()
        gained, lost = self._only(after, before), self._only(before, after)
        stays = self._counted(lost[1], lost[0], concerned, after)
        # Pairs that were no edge have no place among the present ones, and 0 for their weight.
        new = np.concatenate([np.zeros(len(ended[0])), gained[2], np.where(stays, lost[2], 0.0)])
        old = np.concatenate([ended[2], self._weights(gained, present), lost[2]])
        a, b = (np.concatenate([ended[side], gained[side], lost[side]]) for side in (0, 1))
        a, b = np.minimum(a, b), np.maximum(a, b)
        # A pair that was looked at from both ends got the same answer twice.
        _, once = np.unique(self._keys(a, b), return_index=True)
        once = once[new[once] != old[once]]
        rows, (full, needs) = np.union1d(died, concerned), needed(after, self.cap)
        now = np.zeros(len(rows))
        now[np.searchsorted(rows, full)] = needs
        return SynonymChange(a[once], b[once], new[once], old[once], rows, now)

    def _keys(self, a: Rows, b: Rows) -> Rows:
        return a * self.n + b

    def _cut(self, pairs: Scored) -> Scored:
        """Of the edges of some rows those that are among the row's nearest."""
        nearest = Nearest(self.cap, self.text)
        nearest.add(*pairs)
        return nearest.pairs()

    @staticmethod
    def _without(dead: Rows, pairs: Scored) -> Scored:
        alive = ~among(pairs[1], dead)
        return pairs[0][alive], pairs[1][alive], pairs[2][alive]

    def _bereft(self, dead: Rows, neighbours: Rows) -> Rows:
        """The living among `neighbours` that have `cap` edges or more and lose one of their nearest: they may have pairs that
        were no edges, of which one moves up."""
        left = np.unique(neighbours)
        edges = self.edges(left[~among(left, dead)])
        rows, counts = np.unique(edges[0], return_counts=True)
        full = np.isin(edges[0], rows[counts >= self.cap])
        near = self._cut((edges[0][full], edges[1][full], edges[2][full]))
        return np.unique(near[0][among(near[1], dead)])

    def _only(self, these: Scored, those: Scored) -> Scored:
        """The pairs of `these` that are not among `those`."""
        apart = ~np.isin(self._keys(these[0], these[1]), self._keys(those[0], those[1]))
        return these[0][apart], these[1][apart], these[2][apart]

    def _counted(self, rows: Rows, others: Rows, concerned: Rows, after: Scored) -> NDArray[np.bool_]:
        """For each pair, whether `row` counts `other` among its nearest after the change."""
        elsewhere = np.setdiff1d(rows, concerned)
        unchanged = self._cut(self.edges(elsewhere))
        counted = np.concatenate([self._keys(after[0], after[1]), self._keys(unchanged[0], unchanged[1])])
        found: NDArray[np.bool_] = np.isin(self._keys(rows, others), counted)
        return found

    def _weights(self, pairs: Scored, present: Scored) -> NDArray[np.float64]:
        """The present weights of the pairs, 0 where one is no edge."""
        keys = self._keys(present[0], present[1])
        order = np.argsort(keys)
        keys = keys[order]
        wanted = self._keys(pairs[0], pairs[1])
        places = np.searchsorted(keys, wanted).clip(max=max(len(keys) - 1, 0))
        if not len(keys):
            return np.zeros(len(wanted))
        found: NDArray[np.float64] = np.where(keys[places] == wanted, present[2][order][places], 0.0)
        return found
