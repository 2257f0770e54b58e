"""Finds the names in a query without a model: quoted text, capitalised words, and phrases of the memory."""

import re
from collections.abc import Iterator, Sequence

from memory.phrase_normalisation import normalise_phrase
from store.snapshot import Snapshot
from store.text.language import detect_language
from store.text.words import has_unspaced

MAX_NAMES = 16
"""Maximum number of names from one query; each may cost a call of the encoder."""
MAX_NAMING_CHARS = 4_000
"""Number of characters of a query that are searched for names; no encoder processes more."""
MAX_PHRASE_WORDS = 8
"""Maximum number of words of a phrase that is looked up. In scripts without spaces, the maximum is twice this number of
characters."""

_QUOTED = re.compile(r"[\"“«「『《]([^\"“”«»「」『』《》\n]{2,100})[\"”»」』》]")
_WORD = re.compile(r"[^\W_]+(?:[.'’&\-–][^\W_]+)*\.?")
_POSSESSIVE = re.compile(r"['’]s?$|\.$")
# These words between two capitalised words belong to the name; "in" and "and" usually separate two names.
_JOINTS = frozenset(re.findall(r"\w+", "of the de la le du des del della di da von van der den zu al el bin ibn for"))
OPENING_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a an the who whom whose what when where which why how in on at of for from to by with as is are was were be been
        do does did has have had can could will would shall should may might must if and or but not no so it its he she
        they his her their this that these those there here i we you my our your name list give tell describe explain
        during after before under between
        """,
    )
)

_OPENERS = {
    code: frozenset(text.split())
    for code, text in {
        "de": "wer wen wem wessen was welche welcher welches welchen welchem wann wo wohin woher warum weshalb wieso wie "
        "wozu womit wodurch worin woran der die das ein eine im in am an auf aus bei mit nach von zu seit für gibt "
        "ist sind war wird wurde hat haben kann können muss soll darf nenne erkläre",
        "fr": "qui que quoi quel quelle quels quelles quand où comment pourquoi combien lequel laquelle est ce le la les "
        "l un une des du de dans en à au aux pour par sur avec dont cite expliquez",
        "es": "quién quiénes qué cuál cuáles cuándo dónde adónde cómo por para cuánto cuánta cuántos cuántas el la los "
        "las un una en de del con a al desde explica",
        "it": "chi che cosa cos quale quali quando dove come perché quanto quanta quanti quante il lo la i gli le un una "
        "in nel nella di del della con a al da dal per spiega",
        "pt": "quem que o qual quais quando onde como por porque porquê quanto quanta quantos quantas a os as um uma em "
        "no na de do da com para desde explique",
        "nl": "wie wat welke welk wanneer waar waarom hoe hoeveel waarmee waarvoor waarvan de het een in op van met voor "
        "bij aan is zijn was wordt kan moet leg",
    }.items()
}
"""Words that are capitalised only because they begin a question, by language."""


def query_entities(query: str, snapshot: Snapshot) -> list[str]:
    """Returns the names in order of appearance, without duplicates, at most `MAX_NAMES`.

    If no name is quoted or capitalised, the longest known phrases are the names. In languages other than English, known phrases
    are always added: Chinese has no capitals, and in "Debian 这个名字" the capitalised word is not the only name.
    """
    text = query[:MAX_NAMING_CHARS]
    language = detect_language(text)
    found = _unique(_names(text, language))
    if found and language in ("", "en"):
        return found
    return _unique([*found, *_known(text, snapshot, _openers(language))])


def known_names(query: str, snapshot: Snapshot) -> list[str]:
    """Returns the names of a query and the longest phrases of it that the memory knows.

    For a query with words that the encoder does not know."""
    text = query[:MAX_NAMING_CHARS]
    language = detect_language(text)
    return _unique([*_names(text, language), *_known(text, snapshot, _openers(language))])


def _openers(language: str) -> frozenset[str]:
    return OPENING_WORDS | _OPENERS.get(language, frozenset())


def _names(text: str, language: str) -> list[str]:
    return [*_QUOTED.findall(text), *_capitalised(_QUOTED.sub(" , ", text), _openers(language))]


def _unique(names: Sequence[str] | Iterator[str]) -> list[str]:
    by_phrase: dict[str, str] = {}
    for name in names:
        by_phrase.setdefault(normalise_phrase(name), name)
    by_phrase.pop("", None)
    return list(by_phrase.values())[:MAX_NAMES]


def _capitalised(text: str, openers: frozenset[str]) -> Iterator[str]:
    """Yields runs of capitalised words, including numbers between them. A question's opening word is not a name."""
    for sentence in re.split(r"[?!;,:()\[\]\n]+|\.\s", text):
        words = _WORD.findall(sentence)
        at = 0
        while at < len(words):
            if not _is_name(words[at]) or (at == 0 and words[at].lower() in openers):
                at += 1
                continue
            end = at + 1
            while end < len(words):
                if _is_name(words[end]) or words[end][0].isdigit():
                    end += 1
                    continue
                joint = end
                while joint < len(words) and joint - end < 2 and words[joint] in _JOINTS:
                    joint += 1
                if joint == end or joint >= len(words) or not _is_name(words[joint]):
                    break
                end = joint + 1
            yield _POSSESSIVE.sub("", " ".join(words[at:end]))
            at = end


def _is_name(word: str) -> bool:
    return word[0].isupper() and not (len(word) == 1 and word in "AI")


def _known(text: str, snapshot: Snapshot, openers: frozenset[str]) -> Iterator[str]:
    """Yields the longest living phrases in the text from left to right, without overlaps."""
    words = normalise_phrase(text).split()
    at = 0
    while at < len(words):
        for length in range(min(MAX_PHRASE_WORDS, len(words) - at), 0, -1):
            phrase = " ".join(words[at : at + length])
            if (length > 1 or (len(phrase) > 2 and phrase not in openers)) and snapshot.phrase_row(phrase) is not None:
                yield phrase
                at += length
                break
        else:
            if has_unspaced(words[at]):
                yield from _known_within(words[at], snapshot)
            at += 1


def _known_within(run: str, snapshot: Snapshot) -> Iterator[str]:
    at = 0
    while at < len(run):
        for length in range(min(2 * MAX_PHRASE_WORDS, len(run) - at), 1, -1):
            if snapshot.phrase_row(run[at : at + length]) is not None:
                yield run[at : at + length]
                at += length
                break
        else:
            at += 1
