"""Parts of speech of German, by the Hanover Tagger: morphemes of a word, then the likeliest sequence (Wartena 2019)."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from memory.openie.rules.languages import words as w
from memory.openie.rules.languages.words import Word

_TAGS = {
    "NN": w.NOUN,
    "NNI": w.NOUN,
    "NNA": w.NOUN,
    "NE": w.NAME,
    "FM": w.NAME,
    "ADJ(A)": w.ADJECTIVE,
    "ADJ": w.ADJECTIVE,
    "ADJ(D)": w.ADVERB,
    "CARD": w.NUMBER,
    "ART": w.DETERMINER,
    "PDAT": w.DETERMINER,
    "PIAT": w.DETERMINER,
    "PPOSAT": w.DETERMINER,
    "APPR": w.PREPOSITION,
    "APPRART": w.PREPOSITION,
    "VV(FIN)": w.VERB,
    "VA(FIN)": w.AUXILIARY,
    "VM(FIN)": w.AUXILIARY,
    "VV(PP)": w.NONFINITE,
    "VA(PP)": w.NONFINITE,
    "VM(PP)": w.NONFINITE,
    "VV(INF)": w.NONFINITE,
    "VA(INF)": w.NONFINITE,
    "VM(INF)": w.NONFINITE,
    "VV(IZU)": w.NONFINITE,
    "PTKNEG": w.PARTICLE,
    "PTKVZ": w.PARTICLE,
    "PTKZU": w.PARTICLE,
    "PRF": w.PARTICLE,
    "PPER": w.PRONOUN,
    "PDS": w.PRONOUN,
    "PIS": w.PRONOUN,
    "KON": w.CONJUNCTION,
    "KOKOM": w.PREPOSITION,
    "KOUS": w.SUBORDINATOR,
    "KOUI": w.SUBORDINATOR,
    "PRELS": w.SUBORDINATOR,
    "PWS": w.SUBORDINATOR,
    "PWAV": w.SUBORDINATOR,
    "PWAT": w.SUBORDINATOR,
    "$,": w.COMMA,
    "$(": w.MARK,
    "$.": w.MARK,
}
_GENITIVE = frozenset({"des", "eines", "der", "einer"})
LONGEST_WORD = 50
"""Letters; what is longer counts as some noun."""
MODEL = "morphmodel_ger.pgz"


@cache
def _tagger() -> Any:
    from HanTa.HanoverTagger import HanoverTagger

    tagger = HanoverTagger(MODEL)
    # Most of the time goes into the morphemes of a word, which do not depend on its sentence.
    tagger.analyze_forward = lru_cache(1 << 14)(tagger.analyze_forward)
    return tagger


def _is_plural(sentence: Sequence[str]) -> bool:
    """Whether the second word can be a verb in the plural: "Sie können" is polite or several."""
    return len(sentence) > 1 and sentence[1].endswith(("en", "ind"))


def tag_german(sentence: Sequence[str]) -> list[Word]:
    """The words with their tags. Common nouns are told from names, though both are capitalised."""
    tagger = _tagger()
    # Morphemes cost the square of a word's length, and no word of German is that long.
    numbers = tagger.tag_sent_viterbi([text if len(text) <= LONGEST_WORD else "Wort" for text in sentence])
    found: list[Word] = []
    for i, (text, number) in enumerate(zip(sentence, numbers, strict=True)):
        tag = _TAGS.get(tagger.int2tag[number], w.ADVERB)
        if not text[0].isalnum():
            tag = w.COMMA if text == "," else w.MARK
        elif text[0].isdigit():
            tag = w.NUMBER
        elif tag == w.DETERMINER and text in _GENITIVE and found and found[-1].tag in (w.NOUN, w.NAME):
            # "das Archiv des Projekts": nobody but a genitive stands between two nouns without a comma.
            tag = w.OF if text in ("des", "eines") or i > 1 else tag
        elif tag == w.DETERMINER and text.lower().startswith("kein"):
            tag = w.PARTICLE  # it denies the verb: "rendert keine Syntax"
        elif tag == w.NOUN and not text[0].isupper():
            tag = w.ADVERB  # prose writes every noun with a capital
        elif tag == w.PRONOUN and text == "Sie" and (i > 0 or _is_plural(sentence)):
            text = "du"  # the polite form: it means the reader, not a person or thing of the text
        found.append(Word(text, tag))
    return found
