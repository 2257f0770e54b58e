"""Divides a tagged sentence into chunks, from left to right."""

from collections.abc import Sequence

from memory.openie.rules.grammar.chunk import ADVERB, AND, BREAK, CLOSE, COMMA, NOUN, OPEN, PREP, VERB, WHICH, Chunk
from memory.openie.rules.grammar.modality import AUXILIARY, REPORTS
from memory.openie.rules.grammar.noun_phrases import read_noun_phrase, read_possessed_noun, starts_noun_phrase
from memory.openie.rules.grammar.tokenizer import word_set

_VERBS = frozenset({"VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "MD"})
_BE = word_set("be is are was were been being am 's 're")
_HAVE = word_set("have has had having 've")
_AUXILIARY = _BE | _HAVE | AUXILIARY
_FINITE_TAGS = frozenset({"VBD", "VBZ", "VBP", "MD"})
_MARKS = {"&": AND, "(": OPEN, "[": OPEN, ")": CLOSE, "]": CLOSE, ",": COMMA, "-": COMMA}
_MARKS |= dict.fromkeys((";", ":", "–", "—", "--", "|", "/"), BREAK)
_PREPOSITIONS = word_set("with by in on for of from as at")
_GENERIC = word_set("which who whom that whose what")


def chunk_sentence(words: Sequence[str], tags: Sequence[str], title: Sequence[str]) -> list[Chunk]:
    """`title`: lower-cased words of a name that is kept whole wherever it occurs."""
    found: list[Chunk] = []
    i, n = 0, len(words)
    opening = title[0] if title else None
    while i < n:
        word, lower = words[i], words[i].lower()
        # The tagger mistakes some prepositions for relative pronouns: "files named by users".
        tag = "IN" if tags[i] == "WDT" and lower in _PREPOSITIONS else tags[i]
        if (
            tag == "DT"
            and i + 1 < n
            and words[i + 1].lower() == opening
            and lower != opening
            and _at(words, i + 1, title)
        ):
            end = i + 1
        elif lower == opening and _at(words, i, title):
            end = i + len(title)
            while (
                end < min(n, i + len(title) + 3)
                and words[end][0].isupper()
                and tags[end] in ("NNP", "NNPS", "NN", "CD")
            ):
                end += 1
            found.append(Chunk(NOUN, list(words[i:end]), i, end, name=True, title=True))
        elif word in ("``", "“", '"', "«"):
            end = _quoted(words, i)
            if end:
                found.append(Chunk(NOUN, list(words[i + 1 : end - 1]), i, end, name=True))
            else:
                end = i + 1
        elif i + 2 < n and _limits(lower, words[i + 1], tags[i + 2]):
            end = i + 2
        elif tag in _VERBS and words[i + 1 : i + 3] == ["(", ")"]:
            end = i + 3
            found.append(Chunk(NOUN, [word], i, end))  # "read()"
        elif tag == "PRP" or (tag == "DT" and _alone(tags, words, i)):
            found.append(Chunk(NOUN, [word], i, i + 1, pronoun=True))
            end = i + 1
        elif tag == "EX":
            found.append(Chunk(NOUN, [word], i, i + 1, pronoun=True, tag="EX"))
            end = i + 1
        elif word == "'s" and tag == "VBZ" and words[i - 1].lower() == "it":
            end = _verb(found, words, tags, i)
        elif word == "'s" or word == "'" or word == "’":
            end = read_possessed_noun(found, words, tags, i)
        elif starts_noun_phrase(words, tags, i, found):
            end = read_noun_phrase(found, words, tags, i)
        elif lower == "according" and i + 1 < n and words[i + 1].lower() == "to":
            end = i + 2
            found.append(Chunk(PREP, ["according to"], i, end))
        elif lower == "following" and i == 0 and n > 1 and tags[1] in ("DT", "PRP$", "NNP", "CD"):
            end = i + 1
            found.append(Chunk(PREP, [lower], i, end))
        elif tag in _VERBS or (tag == "TO" and i + 1 < n and tags[i + 1] in ("VB", "VBP")):
            end = _verb(found, words, tags, i)
        elif lower in _GENERIC or tag in ("WDT", "WP", "WP$", "WRB"):
            found.append(Chunk(WHICH, [word], i, i + 1, tag="WRB" if lower in ("where", "when", "why", "how") else tag))
            end = i + 1
        elif tag in ("IN", "TO"):
            # "southeast of": the adverb belongs to the preposition.
            before = found.pop().words if found and found[-1].kind == ADVERB and found[-1].end == i else []
            found.append(Chunk(PREP, [*before, lower], i, i + 1))
            end = i + 1
        elif tag == "CC":
            found.append(Chunk(AND, [lower], i, i + 1))
            end = i + 1
        elif word in _MARKS:
            found.append(Chunk(_MARKS[word], [word], i, i + 1))
            end = i + 1
        elif tag in ("RB", "RBR", "RBS", "RP"):
            found.append(Chunk(ADVERB, [word], i, i + 1))
            end = i + 1
        else:
            end = i + 1
        i = end
    return found


def _limits(word: str, following: str, tag: str) -> bool:
    """Whether two words only limit what follows: "more than" ten, "at least" the editor."""
    if following == "than":
        return word in ("more", "less", "fewer") and tag == "CD"
    return word == "at" and following == "least" and tag != "CD"


def _at(words: Sequence[str], i: int, name: Sequence[str]) -> bool:
    return len(words) - i >= len(name) and all(words[i + k].lower() == part for k, part in enumerate(name))


def _quoted(words: Sequence[str], i: int) -> int:
    """Returns the end of the quotation that opens at `i`, if it is short and begins like a title; otherwise 0."""
    close = {"``": "''", "“": "”", '"': '"', "«": "»"}[words[i]]
    for end in range(i + 1, min(i + 12, len(words))):
        if words[end] == close:
            inner = words[i + 1 : end]
            return end + 1 if inner and (inner[0][0].isupper() or inner[0][0].isdigit()) else 0
    return 0


def _alone(tags: Sequence[str], words: Sequence[str], i: int) -> bool:
    """Whether the determiner at `i` is used as a noun ("this is", "both of")."""
    if words[i].lower() in ("the", "a", "an", "every", "no", "neither"):
        return False
    return i + 1 >= len(tags) or tags[i + 1] in _VERBS or tags[i + 1] in ("IN", ",", "CC")


def _verb(found: list[Chunk], words: Sequence[str], tags: Sequence[str], i: int) -> int:
    """Reads one verb group, with auxiliaries, adverbs, infinitives and particles, and returns its end."""
    start, n = i, len(words)
    group: list[str] = []
    finite = tags[i] in ("VBD", "VBZ", "VBP", "MD")
    while i < n:
        tag, lower = tags[i], words[i].lower()
        if tag in _VERBS:
            joined = not group or group[-1] in _BE or tags[i - 1] == "RB"
            if tag == "VBG" and not joined and tags[i - 1] not in ("VBN", "VBD", "VBZ"):
                break
            if tag == "VBN" and not joined and group[-1] not in _HAVE:
                break
            if tag in _FINITE_TAGS and _is_whole(group, tags[i - 1], lower):
                # In "What Ann needs is", a clause ends between the two verbs.
                break
            has = words[i + 1 : i + 2] == ["been"]
            group.append(lower if lower != "'s" else "has" if has else "is")
        elif tag == "TO" and i + 1 < n and tags[i + 1] in ("VB", "VBP") and words[i + 1].islower():
            group.append(lower)
        elif tag in ("RB", "RBS", "RBR", "RP") and i + 1 < n and (tags[i + 1] in _VERBS or tags[i + 1] in ("RB", "RP")):
            if lower in ("not", "n't", "n’t", "never") and words[i + 1].lower() not in (
                "only",
                "just",
                "merely",
                "simply",
            ):
                group.append("not" if lower in ("n't", "n’t") else lower)
        elif (tag == "RP" and group) or (lower == "yet" and i + 1 < n and tags[i + 1] == "TO"):
            group.append(lower)
        else:
            break
        i += 1
    passive = len(group) > 1 and any(word in _BE for word in group[:-1])
    tag = "be" if group and group[-1] in _BE else "passive" if passive else "finite" if finite else tags[start]
    found.append(Chunk(VERB, group or [words[start].lower()], start, max(i, start + 1), tag=tag))
    return max(i, start + 1)


def _is_whole(group: Sequence[str], tag: str, following: str) -> bool:
    """Whether a finite verb after the group belongs to another clause. `tag`: the tag of the group's last word.

    The verb belongs to the same clause after a past participle ("the best known is"), a verb of reporting ("believes will"), or
    an adverb tagged as a verb ("briefly", "last").
    """
    if not group or group[0] == "to" or group[-1] in _AUXILIARY or group[-1] in REPORTS:
        return False
    if group[-1].endswith("ly") or group[-1] in ("last", "first"):
        return False
    if tag == "VBN":
        return len(group) > 1 and following in _AUXILIARY
    return tag in ("VBD", "VBZ", "VBP", "VB")
