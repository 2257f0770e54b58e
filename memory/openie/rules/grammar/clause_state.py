"""The state of the parser within one sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory.openie.rules.grammar.chunk import ADVERB, AND, BREAK, NOUN, VERB, WHICH, Chunk
from memory.openie.rules.triple_collector import TripleCollector
from memory.openie.rules.triple_filter import names_nothing

POSSESSIVE = frozenset({"his", "her", "its", "their", "my", "our"})
FINITE = frozenset({"finite", "be", "passive"})
_MOST_SUBJECTS = 6
_LONGEST_VERB = 200
"""Maximum number of characters of a verb ("to go to go to go"); only its end is used."""


def short(c: Chunk) -> str:
    """Returns the phrase as it appears in a predicate."""
    return c.text if len(c.words) <= 6 else " ".join(c.words[-4:])


def opens_with_common_word(c: Chunk) -> bool:
    """Whether a noun phrase is one common word; a capital then only marks the beginning of the sentence."""
    return len(c.words) == 1 and names_nothing(c.words[0].lower())


@dataclass(frozen=True, slots=True)
class OuterClause:
    """An outer clause that still waits for its verb while an embedded clause is read (`embedded_clauses`)."""

    subjects: list[str]
    lead: str = ""
    begun_by_comma: bool = False
    """Whether commas begin and end the embedded clause."""
    verbs_touch: bool = False
    """Whether the outer clause's verb must directly follow the verb of the embedded clause: "when Ann died is unknown"."""


class ClauseState:
    """Subjects, verb, and the last parts that were read (`left`, `since`)."""

    def __init__(self, found: TripleCollector, chunks: Sequence[Chunk], respectively: bool = False) -> None:
        """`respectively`: each object belongs to only one of several subjects. Such a sentence gives no triple: the pairs are
        not determined."""
        self.found, self.coref, self.chunks, self._respectively = found, found.coref, chunks, respectively
        self.subjects: list[str] = []
        self.main: tuple[list[str], str] = ([], "")
        self.lead = self.verb = self.tail = self.prep = self.last_predicate = ""
        self.copula = False
        self.left: Chunk | None = None
        self.left_phrase = ""
        self.objects = 0
        self.by_prep = False
        self.whose = ""
        self.peers: list[str] = []
        self.since: list[str] = []
        self.adverbials: list[tuple[str, str]] = []
        self.appositive: tuple[str, str] | None = None
        self.relative = self.relative_prep = ""
        self.outer: OuterClause | None = None
        """The clause that contains the embedded clause being read."""
        self.near = True
        """Whether the subject is adjacent to the verb, and the verb to the present phrase."""
        self.by_participle = False
        """Whether the verb is a participle in a sentence with other verbs."""

    def mention(self, c: Chunk) -> str:
        phrase = self.coref.resolve(c)
        if c.name and phrase and not c.date and not (c.start == 0 and not c.title and opens_with_common_word(c)):
            self.found.names.setdefault(phrase)
        return phrase

    def owner(self, c: Chunk) -> str:
        if c.owner is not None:
            return self.mention(c.owner)
        return self.coref.resolve_pronoun(c.det) if c.det in POSSESSIVE else ""

    def predicate(self, tail: bool = True) -> str:
        return f"{self.lead} {self.verb[-_LONGEST_VERB:]} {self.tail if tail else ''}"

    def say(self, predicate: str, object_: str, near: bool = True) -> None:
        if self._respectively and len(self.subjects) > 1:
            return
        for subject in self.subjects[:_MOST_SUBJECTS]:
            self.found.add_triple(subject, predicate, object_, near=near and self.near and not self.lead)
            for peer in self.peers:
                self.found.add_triple(subject, predicate.replace(self.verb, peer, 1), object_, near=False)

    def is_direct(self) -> bool:
        """Whether no object has followed the verb yet."""
        return self.objects == 0 and bool(self.since) and self.since[-1] == VERB

    def following(self, i: int) -> Chunk | None:
        return self.chunks[i + 1] if i + 1 < len(self.chunks) else None

    def starts_clause(self, i: int) -> bool:
        """Whether the noun phrase at `i` is the subject of another verb."""
        following = self.following(i)
        if following is not None and following.kind == ADVERB:
            following = self.following(i + 1)
        return following is not None and following.kind == VERB and following.tag in FINITE

    def is_listed(self, i: int) -> bool:
        """Whether the commas here separate the items of a list, that is, an "and" comes before the verb."""
        for c in self.chunks[i + 1 :]:
            if c.kind in (VERB, WHICH, BREAK):
                return False
            if c.kind == AND:
                return True
        return False

    def clause_ahead(self, i: int) -> bool:
        if i + 1 < len(self.chunks) and self.chunks[i].kind == self.chunks[i + 1].kind == NOUN:
            i += 1
        return self.chunks[i].kind == NOUN and self.starts_clause(i)

    def close(self) -> None:
        self.verb = self.tail = self.prep = self.lead = self.relative = ""
        self.subjects, self.left, self.left_phrase, self.appositive, self.copula = [], None, "", None, False
        self.outer = None
