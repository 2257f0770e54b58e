"""Collects the triples and names of one passage."""

from memory.openie.rules.coreference import Coreference
from memory.openie.rules.languages.non_terms import NON_TERMS
from memory.openie.rules.titles import names_manual
from memory.openie.rules.triple_filter import (
    is_malformed,
    is_of_another_clause,
    is_preposition,
    is_relation,
    is_short_for,
    is_tautology,
    is_vague,
    may_be_noun,
    names_nothing,
    states_outright,
)
from memory.phrase_normalisation import normalise_phrase
from store.types import MENTION, Triple

_MAX_PREDICATE, _MAX_PHRASE = 10, 14
"""Maximum number of words. Longer relations are over-specified (ReVerb, Fader et al. 2011, section 3.1)."""
_BE = frozenset({"is", "was", "are", "were"})
_MAX_CHARS = 400
"""Maximum number of characters of subject and object together."""


class TripleCollector:
    def __init__(self, coref: Coreference, technical: bool = False, direct_only: bool = False) -> None:
        self.coref, self.technical = coref, technical
        self.direct_only = direct_only or coref.strict or bool(coref.document_title)
        self.triples: dict[Triple, None] = {}
        self.names: dict[str, None] = {}
        self._near: dict[Triple, bool | None] = {}
        self._no_titles: set[str] = set()

    def add_triple(
        self, subject: str, predicate: str, object_: str, near: bool | None = None, is_column: bool = False
    ) -> None:
        """Adds a statement, or a mention if neither a verb nor a column's name (`is_column`) relates subject and object.

        `near`: whether the verb relates adjacent phrases; None without a verb.
        """
        if predicate := normalise_phrase(predicate):
            if is_preposition(predicate) and not is_column:
                # "The Bank of Norway in Oslo" is not a statement, because it has no verb.
                self.add_mention(subject, object_)
            else:
                self._add(subject, predicate, object_, near)

    def add_mention(self, subject: str, object_: str) -> None:
        """Adds a mention: two names that occur together without a known relation."""
        if NON_TERMS.isdisjoint((subject, object_)):
            self._add(subject, MENTION, object_, None)

    def _add(self, subject: str, predicate: str, object_: str, near: bool | None) -> None:
        if not subject or not object_ or subject == object_:
            return
        title = self.coref.title
        if any(end != title and end.count(" ") >= _MAX_PHRASE for end in (subject, object_)):
            return
        if len(subject) + len(object_) > _MAX_CHARS:
            return
        words = predicate.split()
        if len(words) > _MAX_PREDICATE:
            predicate = " ".join(words[: _MAX_PREDICATE // 2] + words[-_MAX_PREDICATE // 2 :])
        self.triples.setdefault((subject, predicate, object_))
        if not self._near.get((subject, predicate, object_)):
            self._near[subject, predicate, object_] = near

    def add_name(self, name: str, may_be_title: bool = True) -> None:
        """Records a name that will be connected to the title. `may_be_title`: the name may replace a missing title."""
        if name and name.count(" ") < _MAX_PHRASE:
            if not may_be_title and name not in self.names:
                self._no_titles.add(name)
            self.names.setdefault(name)
            self.coref.note_name(name)

    def entities(self) -> list[str]:
        """Returns the title and the names, in reading order."""
        return list(dict.fromkeys(name for name in (self.coref.title, *self.names) if name and name not in NON_TERMS))

    def link_names_to_title(self) -> None:
        """Connects the title with each name that no triple connects to it. These edges join passages about one topic."""
        coref = self.coref
        named = (name for name in self.names if name not in self._no_titles)
        title = coref.title or ("" if coref.is_generic else next(named, ""))
        if coref.kind[0] == title and coref.kind[1]:
            self.add_triple(title, "is", coref.kind[1])
        if self.technical:
            # Names in code occur in many passages, so they would connect all passages.
            if not self.triples:
                self.add_mention(title, coref.document_name)
            return
        if not coref.strict:
            is_ending = coref.qualifier != "" and (
                coref.qualifier.startswith(".")  # "Import notes (.zip)"
                or names_manual(coref.qualifier)
                or is_tautology(title, normalise_phrase(coref.qualifier))  # "Redbird format (redbird)"
            )
            if coref.qualifier and not is_ending:
                self.add_triple(title, "is", normalise_phrase(coref.qualifier))
            if not is_ending:
                # Other passages may be about another Midway; only the full title is unique.
                self.add_triple(title, "also known as", coref.full_title)
        self.add_mention(title, coref.document_name)
        tied = {o if s == title else s for s, _, o in self.triples if title in (s, o)}
        for name in self.names:
            if name not in tied:
                self.add_mention(title, name)
        if self.triples and not any(title in (s, o) for s, _, o in self.triples):
            self.add_mention(title, next(iter(self.triples))[0])

    def _is_specific(self, subject: str, predicate: str, object_: str) -> bool:
        """Whether subject and object are specific enough to recur in other passages: no single common word ("city"), except
        after a form of "be"."""
        known = object_ in self.names or object_ == self.coref.title or " " in object_ or object_[0].isdigit()
        if not known and predicate not in _BE:
            return False
        named = subject in self.names and not names_nothing(subject)  # "Example for"
        return " " in subject or subject[0].isdigit() or named or subject == self.coref.title

    def _says_something(self, triple: Triple) -> bool:
        """Whether the statement is specific enough to recur in other passages: it is about a name, or relates adjacent
        phrases."""
        subject, predicate, object_ = triple
        unnamed = [end for end in (subject, object_) if end != self.coref.title and end not in self.names]
        near = self._near.get(triple)
        if predicate in _BE and is_tautology(subject, object_):
            return False
        if predicate == MENTION:
            return not self.technical and not any(map(is_malformed, unnamed))
        if self.direct_only:
            return self._is_outright(triple, near)
        if is_of_another_clause(subject, predicate):
            return False
        if len(unnamed) < 2:
            return is_relation(predicate, of_names=True) and not any(map(is_malformed, unnamed))
        return is_relation(predicate, of_names=near is None) and not any(map(is_malformed, unnamed))

    def _is_outright(self, triple: Triple, near: bool | None) -> bool:
        """Whether a technical sentence states the triple directly, about a thing with a name."""
        subject, predicate, object_ = triple
        if predicate == "also known as":
            return is_short_for(object_, subject) or is_short_for(subject, object_)
        if not near or not is_relation(predicate) or not states_outright(subject, predicate):
            return False
        if may_be_noun(predicate) and not (subject in self.names and " " in subject):
            return False
        if object_[0].isdigit() and predicate.endswith("ed"):
            return False  # "is made · 6 weeks"
        return not any(is_vague(end) for end in (subject, object_) if end != self.coref.title)

    def drop_vague_triples(self, before: int) -> None:
        """Keeps the first `before` triples. Of the other triples, deletes the unspecific ones, and (S, is, daughter) if there
        is (S, is daughter of, X).

        The longer triple contains more information, and a query is linked to few triples.
        """
        fresh = list(self.triples)[before:]
        kept = [triple for triple in fresh if self._is_specific(*triple) and self._says_something(triple)]
        for triple in set(fresh).difference(kept):
            del self.triples[triple]
        for subject, predicate, object_ in kept:
            if object_ in self.names or object_ == self.coref.title:
                continue
            longer = f"{predicate} {object_} "
            if any(
                s == subject and f"{p} {o} ".startswith(longer) and (p, o) != (predicate, object_) for s, p, o in kept
            ):
                del self.triples[subject, predicate, object_]
