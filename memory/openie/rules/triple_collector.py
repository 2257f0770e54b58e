"""The triples and names of one passage, as they are found."""

from memory.openie.rules.coreference import Coreference
from memory.phrases import normalise_phrase
from store.types import Triple

_MAX_PREDICATE, _MAX_PHRASE = 10, 14
"""Words. ReVerb (Fader et al. 2011, section 3.1) found longer relations to be over-specified."""
_MAX_CHARS = 400
"""Of subject and object together."""


class TripleCollector:
    """What is found in one passage: `triples` and `names` grow in reading order."""

    def __init__(self, coref: Coreference) -> None:
        self.coref = coref
        self.triples: dict[Triple, None] = {}
        self.names: dict[str, None] = {}

    def add_triple(self, subject: str, predicate: str, object_: str) -> None:
        predicate = normalise_phrase(predicate)
        if not subject or not object_ or not predicate or subject == object_:
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

    def add_name(self, name: str) -> None:
        """Note a name that is to be tied to the title."""
        if name and name.count(" ") < _MAX_PHRASE:
            self.names.setdefault(name)
            self.coref.note_name(name)

    def entities(self) -> list[str]:
        """The title and the names met, in reading order."""
        return list(dict.fromkeys(name for name in (self.coref.title, *self.names) if name))

    def link_names_to_title(self) -> None:
        """Tie every name that no triple ties to the title: it is what joins the passages that speak of one thing."""
        coref = self.coref
        title = coref.title or next(iter(self.names), "")
        if coref.qualifier:
            self.add_triple(title, "is", normalise_phrase(coref.qualifier))
        # Other passages may be about another Midway; the title in full is this one's alone.
        self.add_triple(title, "also known as", coref.full_title)
        self.add_triple(title, "part of", coref.document_title)
        tied = {o if s == title else s for s, _, o in self.triples if title in (s, o)}
        for name in self.names:
            if name not in tied:
                self.add_triple(title, "mentions", name)
        if self.triples and not any(title in (s, o) for s, _, o in self.triples):
            self.add_triple(title, "mentions", next(iter(self.triples))[0])

    def _is_specific(self, subject: str, predicate: str, object_: str) -> bool:
        """Whether both ends say enough to be met again: not a lone common word ("city"), except to tell what one is."""
        known = object_ in self.names or object_ == self.coref.title or " " in object_ or object_[0].isdigit()
        if not known and predicate not in ("is", "was", "are", "were"):
            return False
        return " " in subject or subject[0].isdigit() or subject in self.names or subject == self.coref.title

    def drop_vague_triples(self, before: int) -> None:
        """Of the triples since the first `before`, drop (S, is, daughter) beside (S, is daughter of, X).

        The second says it all, and a query is linked to few triples.
        """
        fresh = list(self.triples)[before:]
        kept = [triple for triple in fresh if self._is_specific(*triple)]
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
