"""The inverted index for BM25: which passages contain each term, and how often.

Postings describe the texts of passages, which never change, so postings are only appended. Queries check which passages are
living; document frequencies and the mean length are computed over living passages only. A ranking therefore equals the ranking
of a newly built index.
"""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store.index.append_only_arrays import GrowableArray
from store.index.columns.hashed_rows import SortedHashes, TextRows, map_hashes, save_hashes
from store.index.columns.row_lists import NO_ROWS, ListArrays
from store.index.columns.texts import Texts, map_texts
from store.index.file_arrays import IN_MEMORY, ArrayStorage
from store.index.part import PartFiles, PartWriter
from store.index.words.bm25 import (
    K1,
    B,
    QueryWord,
    TermEntries,
    added_scores,
    best_by_words,
    idf_of,
    most_of,
)
from store.rows import Rows32
from store.text.terms import language_of, passage_terms, query_terms

KEPT_PLACES = 8_192
"""Number of terms whose positions in the saved postings are cached. A query looks up each word's terms in all languages."""

KEPT_TERMS = 4_096
"""Number of terms whose postings are cached, because queries have words in common, and common words take longest."""


@dataclass(frozen=True, slots=True)
class PostingsArrays:
    """Postings as arrays: the entries of term number `i` are `rows[starts[i]:starts[i + 1]]` and the same slice of `counts`."""

    terms: Texts
    places: SortedHashes
    """Maps the hash of each term in use to its number `i`."""
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int32]
    languages: frozenset[str]
    unused: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """Mask of the terms that no passage contains any more, shape (terms,). Set only in arrays that will be saved."""

    def lists(self) -> ListArrays:
        """Returns the rows of each term."""
        return ListArrays(self.starts, self.rows, np.zeros(len(self.starts) - 1, np.bool_))


@dataclass(frozen=True, slots=True)
class ComparedWords:
    """BM25 scores of a query and the passages, limited to the best passages.

    - `rows`: the passages' rows, ascending, shape (k,).
    - `scores`: their BM25 scores, shape (k,).
    - `coverage`: share of the query that each passage covers, from 0 to 1, shape (k,). It is the cosine between the vector of
      the query's words, weighted by inverse document frequency, and that of the words that the passage contains.
    - `rarities`: the inverse document frequency of each word; a word is represented by the tuple of the terms that match it.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    coverage: NDArray[np.float64]
    rarities: dict[tuple[str, ...], float]

    def scores_of(self, rows: Sequence[int]) -> NDArray[np.float32]:
        """Returns the BM25 scores of `rows`, which must be a subset of `self.rows`."""
        return self.scores[np.searchsorted(self.rows, rows)]


class Postings:
    """Append-only postings of all passages, by row: saved postings are arrays, later postings are in a dictionary."""

    def __init__(self, saved: PostingsArrays | None = None, storage: ArrayStorage = IN_MEMORY) -> None:
        """`storage`: allocates the arrays."""
        self._storage = storage
        self._saved: PostingsArrays | None = None
        self._places = TextRows([], storage)
        self._place: Callable[[str], int | None] = lambda _term: None
        """Returns the position of a term in the saved postings; None if it is not in them."""
        self._languages: set[str] = set()
        """The languages of the indexed terms. The language of dead passages may remain, because its terms occur in no living
        passage and so change no score."""
        self._later: dict[str, array[int]] = {}
        """For each term: row, frequency, next row, next frequency, and so on."""
        self._lengths = GrowableArray(np.int32)
        if saved:
            self._fill(saved)

    def _fill(self, saved: PostingsArrays) -> None:
        self._saved, self._places = saved, TextRows(saved.terms, self._storage)
        self._places.load(saved.places)
        self._place = lru_cache(KEPT_PLACES)(self._places.get)
        self._languages = set(saved.languages)
        self._lengths.extend(saved.lengths)

    def save(self, files: PartWriter, name: str, n: int, purged: NDArray[np.bool_]) -> None:
        """Writes the postings of the first `n` passages, without the terms that only passages in the mask `purged` contain."""
        found = self.to_arrays(n, purged)
        for part in ("starts", "rows", "counts", "lengths"):
            files.array(f"{name}-{part}", getattr(found, part))
        found.terms.save(files, f"{name}-terms", found.unused)
        save_hashes(files, name, found.places)
        files.values[f"{name}-languages"] = sorted(found.languages)

    def load(self, files: PartFiles, name: str) -> None:
        """Fills empty postings from files."""
        terms, places = Texts(map_texts(files, f"{name}-terms")), map_hashes(files, name)
        starts, rows, counts, lengths = (
            files.array(f"{name}-{part}") for part in ("starts", "rows", "counts", "lengths")
        )
        languages = frozenset(map(str, files.values[f"{name}-languages"]))
        self._fill(PostingsArrays(terms, places, starts, rows, counts, lengths, languages))

    def extend(self, row: int, text: str) -> int:
        """Indexes the next passage, whose row is `row`; returns its length in words."""
        counted, language, length = passage_terms(text)
        self._lengths.extend([length])
        if language not in self._languages:
            self._languages = self._languages | {language}  # a query may be iterating over the old set
        for term, count in counted.items():
            entries = self._later.get(term)
            if entries is None:
                entries = self._later[term] = array("i")
            entries.extend((row, count))
        return length

    def to_arrays(self, n: int, purged: NDArray[np.bool_] | None = None) -> PostingsArrays:
        """Returns the first `n` passages' postings as arrays. The writer may append concurrently. Takes O(all postings) time.

        `purged`: mask of the purged passages, shape (n,). Terms that only purged passages contain are marked as unused.
        """
        saved = self._saved
        terms, known = (saved.terms, saved.lists()) if saved else (Texts(), ListArrays())
        rows_by_place: dict[int, Rows32] = {}
        counts_by_place: dict[int, Rows32] = {}
        added: dict[str, int] = {}
        for term in self._later.copy():
            rows, counts = self._of(term)
            end = int(np.searchsorted(rows, n))
            place = self._places.get(term)
            if place is None and end:
                place = added[term] = known.n + len(added)
            if place is not None:
                rows_by_place[place], counts_by_place[place] = rows[:end], counts[:end]
        total = known.n + len(added)
        listed = known.replaced(rows_by_place, total)
        counted = (replace(known, rows=saved.counts) if saved else known).replaced(counts_by_place, total)
        terms = terms.copy()
        terms.extend(added)
        unused = _only_in(purged, listed) if purged is not None else np.zeros(total, np.bool_)
        places = self._places.copy()
        places.remove_rows(unused)
        for term, place in added.items():
            if not unused[place]:
                places[term] = place
        places.fold()
        lengths, languages = self._lengths.view()[:n], frozenset(self._languages)
        return PostingsArrays(
            terms, places.arrays, listed.starts, listed.rows, counted.rows, lengths, languages, unused
        )

    def fingerprints(self, n: int, of: Callable[[str], int]) -> NDArray[np.uint64]:
        """Returns a 64-bit fingerprint of the terms and frequencies of each of the first `n` passages, shape (n,).

        `of` maps a term to a 64-bit hash. Fingerprints do not depend on the order in which terms were indexed. The writer may
        append concurrently. Takes O(all postings) time.
        """
        out = np.zeros(n, np.uint64)
        for term in self._names():
            rows, counts = self._of(term)
            inside = rows < n
            # Unsigned numbers wrap around on overflow. A term's list contains each row once.
            out[rows[inside]] += np.uint64(of(term)) * counts[inside].astype(np.uint64)
        return out

    @property
    def languages(self) -> set[str]:
        """Returns the languages of all passages, living or not; this set is never modified."""
        return self._languages

    def lengths(self, n: int) -> NDArray[np.int32]:
        """Returns the number of words of each of the first `n` passages, shape (n,)."""
        return self._lengths.view()[:n]

    def scores(self, query: str, alive: NDArray[np.bool_], total_length: int) -> NDArray[np.float32]:
        """Returns the BM25 score of every passage for `query`, shape (len(alive),).

        The score is 0 if the passage is dead or contains no term of the query. `alive` and `total_length` (words in all living
        passages) must come from the querying snapshot.
        """
        _, words, mean = self._weighed(query, alive, alive, total_length)
        lengths, sums = self._lengths.view(), np.zeros(len(alive))
        for word in words:
            for rows, counts in word.lists:
                sums[rows] += added_scores(word.weight, counts, lengths[rows], mean)
        return sums.astype(np.float32)

    def compare(
        self,
        query: str,
        alive: NDArray[np.bool_],
        counted: NDArray[np.bool_],
        total_length: int | None = None,
        best: int | None = None,
        also: NDArray[Any] = NO_ROWS,
    ) -> ComparedWords:
        """Returns the `best` living passages by BM25 score, including ties.

        If `best` is None, returns every living passage that contains a word of the query. Living passages in `also` are always
        included. Word frequencies and the mean passage length are computed only over living passages in `counted`;
        `total_length` is their number of words, or None if unknown.
        """
        rarities, words, mean = self._weighed(query, alive, counted, total_length)
        lengths = self._lengths.view()[: len(alive)]
        found = best_by_words(words, lengths, mean, best, also)
        whole = sum(idf * idf for idf in rarities.values())
        return ComparedWords(found.rows, found.scores, np.sqrt(found.squares / (whole or 1.0)), rarities)

    def _weighed(
        self, query: str, alive: NDArray[np.bool_], counted: NDArray[np.bool_], total_length: int | None
    ) -> tuple[dict[tuple[str, ...], float], list[QueryWord], float]:
        """Returns the words' inverse document frequencies, the words from rare to common, and the mean length of a passage."""
        if total_length is None:
            total_length = int(self._lengths.view()[: len(alive)][counted].sum())
        living = int(np.count_nonzero(counted))
        mean = max(total_length / max(living, 1), 1e-9)
        rarities, words = {}, []
        dead = None if alive.all() else ~alive
        for terms, repeats in query_terms(query, self._languages).items() if living else ():
            lists = self._living(terms, len(alive), dead)
            holding = sum(len(rows) if counted is alive else int(np.count_nonzero(counted[rows])) for rows, _ in lists)
            rarities[terms] = idf_of(living, holding)
            words.append((terms, QueryWord(rarities[terms], repeats, lists)))
        # The rarest words contribute most to scores and are in the fewest passages.
        return rarities, [word for _, word in sorted(words, key=lambda each: (-each[1].idf, each[0]))], mean

    def words(self, text: str) -> set[tuple[str, ...]]:
        """Returns the words of a text, each represented by the tuple of the terms that match it."""
        return set(query_terms(text, self._languages))

    def scores_of(self, query: str, texts: Sequence[str], alive: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Returns the BM25 scores of `texts`, shape (len(texts),), with the living passages' inverse document frequencies."""
        read = [passage_terms(text) for text in texts]
        lengths = np.array([length for _, _, length in read], np.float64)
        norms = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-9)) if len(texts) else lengths
        out = np.zeros(len(texts))
        living, dead = int(alive.sum()), ~alive
        languages = self._languages.union(language for _, language, _ in read)
        for terms, repeats in sorted(query_terms(query, languages).items()):
            counts = np.array([max(found[term] for term in terms) for found, _, _ in read], np.float64)
            if counts.any():
                holding = sum(len(rows) for rows, _ in self._living(terms, len(alive), dead))
                out += repeats * idf_of(living, holding) * counts * (K1 + 1) / (counts + norms)
        return out

    def _names(self) -> list[str]:
        """Returns all distinct terms."""
        saved = self._saved.terms if self._saved else ()
        return [*saved, *(term for term in self._later.copy() if term not in self._places)]

    def _living(self, terms: Sequence[str], n: int, dead: NDArray[np.bool_] | None) -> list[TermEntries]:
        """Returns the living passages among the first `n` that contain a word, and the frequency of the word in each; `dead` is
        the mask of the passages to omit.

        The frequency of a word is the frequency of its most frequent term. No passage is in two lists; the longest list comes
        first.
        """
        by_language: dict[str, list[list[TermEntries]]] = {}
        for term in self._among(terms):
            if parts := self._parts(term):
                by_language.setdefault(language_of(term), []).append(parts)
        lists = []
        # A passage has one language, and all entries of a passage for one term are in one part.
        for found in by_language.values():
            for rows, counts in found[0] if len(found) == 1 else [most_of([part for parts in found for part in parts])]:
                if int(rows[-1]) >= n:
                    # The rows of a term are ascending; rows from `n` on are newer than the snapshot.
                    end = int(np.searchsorted(rows, n))
                    rows, counts = rows[:end], counts[:end]
                if dead is not None and (gone := dead[rows]).any():
                    rows, counts = rows[~gone], counts[~gone]
                if len(rows):
                    lists.append((rows, counts))
        return sorted(lists, key=lambda entries: -len(entries[0]))

    def _among(self, terms: Sequence[str]) -> Sequence[str]:
        """Returns the `terms` that are indexed. Most are not: a query word has a term in each language."""
        later, place = self._later, self._place
        return [term for term in terms if term in later or place(term) is not None]

    def _of(self, term: str) -> TermEntries:
        """Returns the rows that contain a term (ascending) and its frequency in each."""
        parts = self._parts(term)
        if len(parts) == 1:
            return parts[0]
        nothing = np.empty(0, np.int32)
        rows, counts = zip(*parts, strict=True) if parts else ((nothing,), (nothing,))
        return np.concatenate(rows), np.concatenate(counts)

    def _parts(self, term: str) -> list[TermEntries]:
        """Returns the entries of a term: first the saved part, then the later part. Empty parts are omitted."""
        parts: list[TermEntries] = []
        place = self._place(term)
        if place is not None and self._saved is not None:
            part = slice(self._saved.starts[place], self._saved.starts[place + 1])
            parts.append((self._saved.rows[part], self._saved.counts[part]))
        if (entries := self._later.get(term)) is not None:
            # The writer may append concurrently. `tobytes` copies without releasing the GIL. numpy could release it while
            # reading the array, and an array whose buffer is exported cannot grow.
            pairs = np.frombuffer(entries.tobytes(), np.int32)
            found, counts = pairs[: len(pairs) // 2 * 2].reshape(-1, 2).T
            parts.append((found, counts))
        return [each for each in parts if len(each[0])]


def _only_in(passages: NDArray[np.bool_], terms: ListArrays) -> NDArray[np.bool_]:
    """Returns the mask of the `terms` that occur only in `passages` (mask), shape (terms.n,)."""
    entries = np.flatnonzero(passages[terms.rows]) if len(terms.rows) else np.empty(0, np.int64)
    of_each = np.searchsorted(terms.starts, entries, "right") - 1
    found: NDArray[np.bool_] = np.bincount(of_each, minlength=terms.n) == np.diff(terms.starts)
    return found


class SelectedPostings(Postings):
    """The postings of selected passages. The postings are selected from `whole`, because splitting the passages into terms
    again would be slow."""

    def __init__(self, whole: Postings, rows: NDArray[np.int64], n: int) -> None:
        """`rows`: the selected passages among the first `n` of `whole`, in this order, shape (m,)."""
        super().__init__()
        self._whole = whole
        self._languages = whole.languages  # Additional languages change no score.
        here = np.full(n, -1, np.int32)
        here[rows] = np.arange(len(rows), dtype=np.int32)
        self._selected = lru_cache(KEPT_TERMS)(partial(_selected, whole, here))
        self._lengths.extend(whole.lengths(n)[rows])

    def _names(self) -> list[str]:
        return list(dict.fromkeys([*self._whole._names(), *super()._names()]))

    def _among(self, terms: Sequence[str]) -> Sequence[str]:
        return terms

    def _parts(self, term: str) -> list[TermEntries]:
        selected = self._selected(term)
        return [*([selected] if len(selected[0]) else []), *super()._parts(term)]


def _selected(whole: Postings, here: NDArray[np.int32], term: str) -> TermEntries:
    """Returns the postings of a term in the selected passages; `here` maps rows of `whole` to rows of the scope, or to -1."""
    rows, counts = whole._of(term)
    # Rows are ascending, so later passages come last.
    end = len(rows) if not len(rows) or rows[-1] < len(here) else int(np.searchsorted(rows, len(here)))
    places = here[rows[:end]]
    inside = np.flatnonzero(places >= 0)
    return places[inside], counts[:end][inside]
