"""Finds the topic of a passage, and the mentions that refer to it: its title, pronouns, "the journal", a surname alone."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from memory.openie.rules.grammar.chunk import Chunk
from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.tokenizer import tokenize, word_set
from memory.openie.rules.languages.non_terms import NON_TERMS
from memory.openie.rules.titles import LISTS, plain_title
from memory.phrase_normalisation import normalise_phrase

_PRONOUNS = word_set("he she it they him her them his hers its their theirs this these that")
_DEMONSTRATIVES = word_set("this these that")
_DEFINITE = frozenset({"the", "this", "that", "these", "those", "its", "their", "his", "her", "our", "my"})
_GENERIC_HEADINGS = NON_TERMS | word_set(
    "introduction overview summary notes note background contents content details description abstract conclusion "
    "conclusions references history general about information info misc other links appendix discussion results "
    "untitled document readme index main page sheet sheet1 section todo agenda attendees minutes example examples usage "
    "synopsis parameters options arguments outputs navigation toc table format files bugs caveats "
    "environment errors diagnostics authors author copyright colophon standards versions history compatibility "
    "foreword preface acknowledgments acknowledgements glossary bibliography"
)
_REFLEXIVE = word_set("himself herself itself themselves myself ourselves other others such")
_NUMBERS = frozenset({"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "many", "several"})
_NAME_JOINTS = word_set(
    "of the and in on for to a an at by with from de la le du von van der den des di del della do da dos y el los las d l s"
)
_THIS_ITSELF = word_set("module package program library manual book guide utility tool article report note paper")
_TEXTS = word_set("overview introduction summary description guide")
_FILE_KINDS = word_set("readme changelog news announcement faq todo roadmap")
_DESCRIBING = word_set("for with and")
_NEUTRAL = frozenset({"it", "its"})
_PERSONAL = frozenset({"he", "she", "him", "her", "his", "hers"})
_REPLIES = ("re:", "fw:", "fwd:", "aw:", "wg:")
_OPENING = 2_000
"""Number of characters at the beginning of a text that are searched for its heading."""
_JOIN = " › "


def _last_named(title: str, text: str) -> str:
    """Returns the last part of a title that has a meaning outside its document; the first part if there is none."""
    parts = [plain_title(part)[0] for part in title.split(_JOIN) if part.strip()]
    opening = f" {normalise_phrase(text[:_OPENING])} " if len(parts) > 1 else ""
    while len(parts) > 1 and not _is_name(parts[-1], opening):
        parts.pop()
    last = parts[-1] if parts else ""
    if normalise_phrase(last) in _GENERIC_HEADINGS:
        return ""
    while last[:5].lower().startswith(_REPLIES) and last.partition(":")[2].strip():
        last = last.partition(":")[2].strip()
    return last


def subject_of(title: str, text: str) -> tuple[str, str]:
    """Returns the part of a title that names its subject, and the qualifier that follows in brackets ("" if none).

    Headings follow a document's title after " › ". The last heading is the most specific. If it means nothing elsewhere ("The
    tour", "Results"), the previous one is used.
    """
    last = _last_named(title, text)
    if last.endswith(")"):
        head, bracket, inside = last[:-1].rpartition("(")
        if bracket and head.strip():
            return head.strip(), inside.strip()
    return last, ""


def _is_name(heading: str, opening: str) -> bool:
    """Whether a heading is a name: it has a capital that its position does not require, or the beginning of the text contains
    it."""
    words = _words(heading)
    phrase = normalise_phrase(heading)
    if phrase in _GENERIC_HEADINGS or phrase in LISTS or not words:
        return False
    if " " in phrase and f" {phrase} " in opening:
        return True
    lexicon = tagger().lexicon
    return any(
        (word[0].isupper() and (i > 0 or word not in lexicon) and word.lower() not in lexicon)
        or (word[0].isupper() and i > 0 and not all(w[0].isupper() for w in words))
        or not word.isascii()
        for i, word in enumerate(words)
    )


def _words(title: str) -> list[str]:
    return [word for word in tokenize(title) if word[0].isalpha()]


def names_topic(title: str, text: str) -> bool:
    """Whether the title names the topic of the text, as in an encyclopaedia. Titles of sections, tasks and files do not."""
    name = subject_of(title, text)[0]
    words = _words(name)
    if not words or normalise_phrase(name) in _GENERIC_HEADINGS:
        return False
    if opens_with(text, name):
        return True
    if len(words) == 1 and _common(words[0].lower()):
        return False
    if words[0].lower() in _TEXTS and words[1:2] in (["of"], ["to"]):
        return False  # "Overview of maintainer tools"
    if _JOIN in title or _is_task(words):
        return False
    lower = {word.lower() for word in words}
    if lower <= _GENERIC_HEADINGS or lower & _FILE_KINDS or (not _DESCRIBING.isdisjoint(lower) and name not in text):
        return False  # "General information", "A library for readers"
    if all(map(str.isupper, words)) and not any(word in text for word in words):
        return False  # an abbreviation of something else: "#DOAP"
    return _is_name(name, "") or all(word in _NAME_JOINTS or any(map(str.isupper, word)) for word in words)


def _is_task(words: Sequence[str]) -> bool:
    """Whether a title is a task or a question: "Back up a vault", "How it works"."""
    return len(words) > 1 and tagger().lexicon.get(words[0].lower(), "")[:2] in ("VB", "WR", "WP")


def _common(word: str) -> bool:
    """Whether the English lexicon contains the word in lower case; such a word alone is not a name."""
    return tagger().is_common(word)


def opens_with(text: str, name: str) -> bool:
    """Whether the text begins with the name, ignoring an article."""
    opening, phrase = normalise_phrase(text[: len(name) + 40]), normalise_phrase(name)
    for article in ("the ", "a ", "an "):
        opening = opening.removeprefix(article)
    # Scripts without capitals mostly have no spaces either.
    return opening.startswith(f"{phrase} ") or (opening.startswith(phrase) and phrase.upper() == phrase != "")


class Coreference:
    """The subject of one passage, and the names found so far. There is one object per passage, so passages share nothing."""

    def __init__(self, title: str, text: str, strict: bool = False) -> None:
        self.strict = strict
        self.name, self.qualifier = subject_of(title, text)
        full = _last_named(title, text)
        if self.qualifier and opens_with(text, full):
            self.name, self.qualifier = full, ""
        base, comma, _ = self.name.partition(", ")
        if comma and opens_with(text, base) and not opens_with(text, self.name):
            self.name = base
        self.full_title = normalise_phrase(full)
        self.title = normalise_phrase(self.name)
        self.is_common = bool(self.title) and bool(re.search(rf"\b{re.escape(self.title)}s?\b", text))
        """Whether the text writes the title in small letters. If so, the title is no name, and a part of it ("the break" for
        "Column Break") does not refer to it."""
        self.is_in_text = bool(self.name) and self.name in text
        self.is_generic = bool(title.strip()) and not self.title
        """Whether the title is a heading without a name, such as "Example"."""
        document, kind = plain_title(title.split(_JOIN)[0])
        self.document_title = normalise_phrase(document) if _JOIN in title else ""
        self.document_name = "" if self.document_title in _GENERIC_HEADINGS else self.document_title
        self.kind = (normalise_phrase(document), normalise_phrase(kind))
        """The document's name and its kind, from its title; "" if unknown."""
        words = [token.lower() for token in tokenize(self.name)]
        # The word "search" does not always refer to the heading "Search".
        self.title_words = words if len(words) > 1 or not strict else []
        parts = self.title.split()
        self._title_word_set = frozenset(parts)
        self._first = parts[0] if parts else ""
        self._last = parts[-1] if parts else ""
        self.kinds: set[str] = {word for word in parts if len(word) > 3 and not word.isdigit()}
        self.kinds.update(normalise_phrase(self.qualifier).split())
        self._names: dict[str, str] = {}
        # Only names in one piece are shortened, unlike "Song of Solomon" and "Austin, Texas". "Solomon" does not refer to "Song
        # of Solomon", nor "Texas" to "Austin, Texas".
        self._plain = (
            not strict
            and 2 <= len(self.title_words) <= 3
            and all(word[0].isalpha() for word in self.title_words)
            and self._capitals()
        )
        self._is_thing = not _is_task(_words(self.name))
        self.last_subject = self.title
        self.last_named_subject = ""
        self._personal = self._plain and not any(_common(word) for word in (self._last, self._first))
        self.title_was_subject = False
        self.title_mentioned = False
        self.past_first_sentence = False

    def _shortens(self, words: list[str]) -> bool:
        """Whether the words are the title's surname, or its first name if the surname is no common word."""
        if len(words) >= len(self._title_word_set) or not self._title_word_set.issuperset(words):
            return False
        return words[-1] == self._last or (words == [self._first] and not _common(self._last))

    def _lengthens(self, words: list[str]) -> bool:
        """Whether the words are a longer form of the title: "Kevin Wayne Durant", or the full name at the beginning of a text
        on "Bob Frost"."""
        if len(words) <= len(self._title_word_set) or words[-1] != self._last:
            return False
        opening = not self.past_first_sentence and len(words) <= 5 and all(word.isalpha() for word in words)
        return words[0] == self._first or opening

    def _capitals(self) -> bool:
        return all(word[:1].isupper() for word in tokenize(self.name))

    def resolve_pronoun(self, pronoun: str = "it") -> str:
        """Returns the referent of a pronoun: the title if it has been a subject in this passage, otherwise the last subject.

        "she" does not refer to a thing: unless the title can be a person's name, the referent is the last named subject. If the
        title does not name the topic, most pronouns refer neither to the title nor to a subject, and the result is "".
        """
        if self.strict or (self.document_title and pronoun in _DEMONSTRATIVES):
            return self.last_named_subject if pronoun in _PERSONAL else ""
        if pronoun in _PERSONAL and not self._personal and self.last_named_subject:
            return self.last_named_subject
        if pronoun in _NEUTRAL and not self._personal and self.title_mentioned:
            return self.title
        return self.title if self.title_was_subject or not self.last_subject else self.last_subject

    @contextmanager
    def apart_from_title(self, apart: bool) -> Iterator[None]:
        """If `apart`, pronouns do not refer to the title, because the sentences quote another language."""
        strict, self.strict = self.strict, self.strict or apart
        try:
            yield
        finally:
            self.strict = strict

    def begin_paragraph(self) -> None:
        """Begins a paragraph: its first subject is the title again, not the last subject of the previous paragraph."""
        self.last_subject = self.title

    def note_subject(self, subject: str, name: bool) -> None:
        """Records the subject of a sentence. `name`: whether the subject is a name."""
        self.last_subject = subject
        if subject == self.title:
            self.title_was_subject = True
        elif name:
            self.last_named_subject = subject

    def resolve(self, chunk: Chunk) -> str:
        """Returns the phrase that a mention refers to; "" if the referent has no name."""
        phrase = self._resolve(chunk)
        self.title_mentioned = self.title_mentioned or phrase == self.title
        return phrase

    def _resolve(self, chunk: Chunk) -> str:
        if chunk.title:
            return self.title
        if chunk.words[-1].lower() in _REFLEXIVE:
            return ""
        if chunk.pronoun:
            word = chunk.words[0].lower()
            return self.resolve_pronoun(word) if word in _PRONOUNS else ""
        phrase = normalise_phrase(chunk.text)
        if not phrase or phrase in _NUMBERS:
            return ""
        words = phrase.split()
        if (
            not self.document_title
            and self._is_thing
            and words[-1] in _THIS_ITSELF
            and len(words) < 3
            and chunk.det == "this"
            and not chunk.owner
        ):
            return self.title
        definite = chunk.det in _DEFINITE and not chunk.owner and not chunk.name
        if definite and not self.strict and words[-1] in self.kinds and self.kinds.issuperset(words):
            return self.title
        if chunk.name:
            return self._named(phrase, words)
        return phrase

    def _named(self, phrase: str, words: list[str]) -> str:
        if self._plain and (self._shortens(words) or self._lengthens(words)):
            return self.title
        if len(words) == 1:
            return self._names.get(phrase, phrase)
        self.note_name(phrase)
        return phrase

    def note_name(self, phrase: str) -> None:
        """Records a name of several words. From now on, its first or last word alone refers to it, unless one of these words is
        a common word ("Kerberos" is not the Kerberos roadmap)."""
        words = phrase.split()
        # "Norway" does not refer to the Bank of Norway.
        for word in (words[-1], words[0]) if 2 <= len(words) <= 4 and "of" not in words else ():
            others = words[1:] if word is words[0] else ()
            if not word.isdigit() and not _common(word) and not any(map(_common, others)):
                self._names.setdefault(word, phrase)

    def note_kind(self, words: list[str]) -> None:
        """Records a class of the title ("journal"), so that "the journal" refers to the title."""
        if words:
            head = words[-1].lower()
            if head.isalpha():
                self.kinds.add(head)
