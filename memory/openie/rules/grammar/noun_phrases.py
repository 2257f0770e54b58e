"""Reads the noun phrases of a tagged sentence: keeps names whole, and separates descriptions from the names they belong to."""

from collections.abc import Sequence

from memory.openie.rules.grammar.chunk import AND, COMMA, NOUN, PREP, VERB, Chunk
from memory.openie.rules.grammar.dates import CALENDAR, MONTHS, date_end, is_year, noun_follows
from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.tokenizer import word_set

_NAME_JOINTS = word_set("of de la le du des del della di da do dos von van der den zu zur y e al el bin ibn ben & the")
_INSIDE = frozenset(
    {"NN", "NNS", "NNP", "NNPS", "CD", "JJ", "JJR", "JJS", "FW", "$", "#", "NN|JJ", "JJ|NP", "SYM", "LS"}
)
_NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS", "CD", "FW", "SYM", "LS"})
_ADJECTIVES = ("JJ", "JJS", "JJR")
_RELATING = word_set(
    "native similar adjacent close due prior opposite equal equivalent parallel famous notable responsible available "
    "suitable capable indigenous endemic unique common"
)
_ROLES = word_set(
    "ceo cfo cto coo president chancellor senator governor mayor chairman chairwoman spokesman spokeswoman founder"
)
"""Roles that precede a person's name: "Chancellor Ann Lee". "King" and "Prince" are missing, because they are also parts of
names."""
_SHOWS = word_set("stars features follows tells includes covers houses hosts contains depicts plays")
MAX_WORDS = 14
"""Maximum number of words of one noun phrase. A longer phrase is a list or a tagging error, and is cut."""


def starts_noun_phrase(words: Sequence[str], tags: Sequence[str], i: int, found: list[Chunk]) -> bool:
    tag = tags[i]
    if tag in _INSIDE or tag in ("DT", "PRP$", "PDT"):
        return tag != "SYM" and (words[i][0].isalnum() or words[i][0] in "$£€")
    # A participle begins a noun phrase only where no verb is possible.
    if tag in ("VBN", "VBG") and i + 1 < len(tags) and tags[i + 1] in ("NN", "NNS"):
        return not found or (tag == "VBN" and found[-1].kind in (COMMA, AND) and words[i - 1] != ",")
    if words[i] == "n't":  # belongs to the verb before it: "Why don't several presses …?"
        return False
    if tag not in ("RB", "RBS", "RBR") or i + 1 == len(tags) or tags[i + 1] not in ("JJ", "JJS"):
        return False
    return words[i] in ("more", "less") or _leads_noun(tags, i + 1)


def _leads_noun(tags: Sequence[str], i: int) -> bool:
    while i < len(tags) and tags[i] in ("JJ", "JJS", "JJR", "RB", "RBS"):
        i += 1
    return i < len(tags) and tags[i] in _NOUNS


def read_noun_phrase(found: list[Chunk], words: Sequence[str], tags: Sequence[str], i: int) -> int:
    start, n, det = i, len(words), ""
    while i < n and tags[i] in ("DT", "PRP$", "PDT"):
        det = words[i].lower()
        i += 1
    end = date_end(words, tags, i)
    if not end and not det and i < n and is_year(words[i]) and found and found[-1].kind == PREP:
        # "In 1950 American troops": without an article, the year is a phrase of its own.
        end = i + 1
    if end:
        found.append(Chunk(NOUN, [w for w in words[i:end] if w != ","], start, end, det=det, date=True))
        return end
    first = i
    while i < n and i - first < MAX_WORDS and (step := _belong(words, tags, i, first, bool(det))):
        i += step
    if i == first:
        if det and tags[start] != "DT":
            found.append(Chunk(NOUN, [words[start]], start, first, pronoun=True))
        return max(first, start + 1)
    while i - 1 > first and tags[i - 1] in ("JJ", "RB") and not words[i - 1][0].isupper() and tags[i - 2] in _NOUNS:
        i -= 1
    after_noun = found and found[-1].kind == NOUN and found[-1].end == start and not det
    if after_noun and i < n and tags[i] in ("IN", "TO") and words[i - 1] in _RELATING:
        # "a lizard native to Sonora": the adjective relates two phrases, like a participle.
        found.append(Chunk(VERB, [word.lower() for word in words[first:i]], start, i, tag="VBN"))
        return i
    _split(found, words, tags, start, first, i, det)
    return i


def _belong(words: Sequence[str], tags: Sequence[str], i: int, first: int, det: bool) -> int:
    """Returns the number of tokens from `i` on that belong to the noun phrase that began at `first`; 0 if the phrase ends."""
    tag, word = tags[i], words[i]
    inside = i > first
    if tag in _INSIDE and (word[0].isalnum() or word[0] in "$£€%"):
        if inside and is_year(word):
            return int(noun_follows(words, tags, i))
        return int(not (inside and word.lower() in MONTHS and word[0].isupper() and date_end(words, tags, i)))
    following = tags[i + 1] if i + 1 < len(tags) else ""
    if tag in ("VBN", "VBG") and (inside or det) and following in _INSIDE and _leads_noun(tags, i + 1):
        return int(not inside or tags[i - 1] not in _NOUNS or word[0].isupper())
    if tag in ("RB", "RBS", "RBR") and following in ("JJ", "JJS", "VBN") and (not inside or tags[i - 1] == "JJ"):
        return 1
    if not inside:
        return 0
    if tag == "CC" and tags[i - 1] in _ADJECTIVES and following in (*_ADJECTIVES, "RBS"):
        return int(_leads_noun(tags, i + 1))
    if word == "&" and following in _INSIDE:
        return 1
    if joint := _joins(words, tags, i, first):
        return joint
    return int(word[0].isupper() and words[i - 1][0].isupper() and tag not in ("PRP", "MD") and word.isalpha())


def _joins(words: Sequence[str], tags: Sequence[str], i: int, first: int) -> int:
    """Returns the number of small words at `i` that are inside a name ("Games of the Olympiad", "Boso the Elder"); 0 if there
    are none."""
    word = words[i].lower()
    if word not in _NAME_JOINTS or not words[i - 1][0].isupper():
        return 0
    k = i + 1
    while k < len(words) and words[k].lower() in ("the", "la", "der", "den", "las", "los") and k < i + 2:
        k += 1
    if k >= len(words) or not words[k][0].isupper() or tags[k] in ("PRP", "MD", "IN") or words[k].lower() in MONTHS:
        return 0
    if k > i + 1 and i - first > 1 and tagger().lexicon.get(words[i - 1].lower()) != "NN":
        return 0
    return k - i if word != "the" or (tags[i - 1] in ("NNP", "NNPS") and i - first == 1) else 0


def _split(
    found: list[Chunk], words: Sequence[str], tags: Sequence[str], start: int, first: int, end: int, det: str
) -> None:
    """Appends the noun phrase. "psychologist Carl Rogers" becomes two chunks: the description and the name."""
    parts = list(words[first:end])
    head = end - 1
    capital = head
    while capital > first and (
        words[capital - 1][0].isupper() or words[capital - 1].lower() in _NAME_JOINTS or words[capital - 1][0].isdigit()
    ):
        capital -= 1
    # A common word with a capital at the beginning of the sentence is not a name.
    name = words[head][0].isupper() and (head > 0 or tagger().opens_name(words[0]))
    if name:
        while capital < head and not words[capital][0].isupper():
            capital += 1
        while capital > first and words[capital - 1][0].isdigit():
            capital -= 1
        if (role := _role(words, capital, end)) > capital:
            found.append(Chunk(NOUN, list(words[first:role]), start, role, det=det, tag="desc"))
            found.append(Chunk(NOUN, list(words[role:end]), role, end, name=True))
            return
        if capital > first and not words[capital - 1][0].isupper():
            if words[capital - 1] in _SHOWS and capital - 1 > first:
                # "the film stars Ann Lee": "stars" is a verb; the tagger takes it for a plural.
                found.append(Chunk(NOUN, list(words[first : capital - 1]), start, capital - 1, det=det))
                found.append(Chunk(VERB, [words[capital - 1]], capital - 1, capital, tag="finite"))
                found.append(Chunk(NOUN, list(words[capital:end]), capital, end, name=True))
                return
            # "psychologist" describes Carl Rogers; "famous" in "famous Carl Rogers" does not.
            if any(tag in _NOUNS for tag in tags[first:capital]):
                found.append(Chunk(NOUN, list(words[first:capital]), start, capital, det=det, tag="desc"))
            found.append(
                Chunk(NOUN, list(words[capital:end]), capital, end, name=True, date=_is_date(words[capital:end]))
            )
            return
    name = name or any(_is_naming(words[k], k) for k in range(first, end))
    found.append(Chunk(NOUN, parts, start, end, det=det, name=name, date=_is_date(parts), tag=tags[head]))


def _role(words: Sequence[str], first: int, end: int) -> int:
    """Returns where the name begins in "Redbird CEO Ann Lee"; `first` without a role."""
    for k in range(end - 3, first - 1, -1):
        word = words[k].lower()
        if word in _ROLES or (
            word == "officer" and k and words[k - 1].lower() in ("executive", "financial", "operating")
        ):
            person = words[k + 1 : end]
            if all(part[0].isupper() and part.isalpha() for part in person) and not tagger().is_common(
                person[-1].lower()
            ):
                return k + 1
    return first


def _is_date(words: Sequence[str]) -> bool:
    return all(word[0].isdigit() or word.lower() in CALENDAR for word in words)


def _is_naming(word: str, place: int) -> bool:
    """Whether the word makes its phrase a name ("Wren hygrometer"); "British" does not."""
    if not word[0].isupper():
        return False
    known = tagger()
    return known.lexicon.get(word) not in ("JJ", "NNS") and (place > 0 or known.opens_name(word))


def read_possessed_noun(found: list[Chunk], words: Sequence[str], tags: Sequence[str], i: int) -> int:
    """Reads the noun phrase after the "'s" at `i`; the previous phrase is its owner."""
    if not found or found[-1].kind != NOUN or found[-1].end != i:
        return i + 1
    if words[i] != "'s" and not words[i - 1].lower().endswith("s"):
        return i + 1
    if i + 1 >= len(words) or not (tags[i + 1] in _INSIDE or tags[i + 1] in ("VBN", "VBG", "RBS")):
        return i + 1
    before = len(found)
    end = read_noun_phrase(found, words, tags, i + 1)
    if len(found) > before:
        found[before].owner = found[before - 1]
        del found[before - 1]
    return end
