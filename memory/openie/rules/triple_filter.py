"""Checks the words of triples: whether subject, object and predicate are specific enough to recur in other passages."""

from functools import lru_cache

from memory.openie.rules.grammar.dates import CALENDAR
from memory.openie.rules.grammar.modality import REPORTS
from memory.openie.rules.grammar.pos_tagger import tagger
from memory.openie.rules.grammar.tokenizer import word_set

_INDEFINITE = word_set(
    "other another such same following above below previous preceding next more most many several various certain different "
    "own any each every some all both either few fewer less least much given respective corresponding additional further "
    "particular specific appropriate usual common e i eg ie etc latter first second last one two three "
    "possible available necessary relevant related similar main only "
    "exact simple multiple existing default non named "
    "also see added changed removed deprecated note notes example examples return returns returned use using used what "
    "which that this these those there here when where how why it its they them their his her he she you your we our us who "
    "whom if then thus so as nobody none nothing"
)
"""Words that make a phrase unspecific if it begins with them."""
_GENERIC = word_set(
    "example examples section sections chapter chapters page pages documentation document documents note notes list lists "
    "case cases way ways thing things value values name names number numbers type types form forms result results set sets "
    "time times use uses user users usage order information details detail kind kinds sort part parts item items line lines "
    "point points end start beginning rest reason reasons problem problems question purpose description effect effects fact "
    "idea issue issues version versions contents content text table index module modules function functions method methods "
    "class classes object objects argument arguments parameter parameters option options command commands file files "
    "directory data string strings code variable variables property properties field fields entry entries element elements "
    "program programs system process something anything everything nothing someone none true false yes no null default "
    "behavior behaviour place means return manual reference license copyright link links caller others following above "
    "below one ones lot bit instance instances feature features change changes work support action operation operations "
    "call calls mode state status step steps term terms word words key keys source target output input error errors message "
    "messages group member members area level size length history event events test tests tool tools need needs standard "
    "application applications software interface implementation"
)
"""Nouns that are unspecific alone."""
_EMPTY = word_set(
    "way ways thing things idea choice case cases kind kinds sort example examples reason problem use lot following "
    "cause amount purpose aim advantage disadvantage drawback"
)
"""Nouns that are unspecific even with other words."""
_ADVERB_ENDINGS = ("ously", "ally", "ively", "ably", "edly", "ently")
_MALFORMED_END = frozenset(
    {"IN", "DT", "PRP", "PRP$", "WDT", "WP", "WP$", "WRB", "CC", "TO", "MD", "RB", "EX", "RBR", "VBZ", "VBD", "JJR"}
)
_PREPOSITIONS = word_set(
    "in of at from near on for to with by as than under over about through between into within including after before during "
    "since until against among via per"
)
_ORDERS = word_set("see note add use return returns")
_JOINS = word_set("what why then and or but which who whose if when while because whether")
LONGEST = 7
"""Maximum number of words of a phrase that is not a name."""


@lru_cache(1 << 14)
def is_malformed(phrase: str) -> bool:
    """Whether a phrase begins or ends unlike a noun phrase ("then west", "second path is")."""
    if is_number(phrase):
        return False
    words, lexicon = phrase.split(), tagger().lexicon
    first, last = lexicon.get(words[0]), lexicon.get(words[-1])
    return (
        last in _MALFORMED_END
        or first in ("IN", "CC", "MD", "TO", "PRP")
        or (len(words) == 1 and words[0] in _INDEFINITE)
    )


def is_tautology(subject: str, object_: str) -> bool:
    """Whether the subject contains all words of the object, in singular or plural: "standard encryption is encryption"."""
    words = {word.removesuffix("s") for word in subject.split()}
    return words.issuperset(word.removesuffix("s") for word in object_.split())


@lru_cache(1 << 14)
def is_vague(phrase: str) -> bool:
    """Whether a phrase that is not a name is unspecific ("following functions", "e g", "case", "also")."""
    words = phrase.split()
    if words[0] in _INDEFINITE or len(words) > LONGEST:
        return True
    lexicon = tagger().lexicon
    if is_malformed(phrase) or lexicon.get(words[0], "RB" if words[0].endswith(_ADVERB_ENDINGS) else "") == "RB":
        return True
    if words[-1] in _EMPTY or words[0] in _EMPTY:
        return True
    if len(words) == 1:
        tag = lexicon.get(phrase, "NN")
        return words[0] in _GENERIC or len(phrase) < 3 or tag == "VBG" or tag[:2] not in ("NN", "VB", "FW")
    if all(word in _GENERIC for word in words):
        return True
    return sum(len(word) == 1 or word.isdigit() for word in words) * 2 > len(words)


_OUTRIGHT = 5
"""Maximum number of words of the predicate of a direct statement."""
_PARTICIPLE = 3
"""Maximum number of words of a predicate that begins with a present participle."""
_MARKS = word_set("not never no longer hardly rarely reportedly possibly also only")
_BE = word_set("is are was were")
_CONDITIONS = word_set("when whenever where while once until whether")
_WHERE = word_set("in on at with as by")
_PLURAL = word_set("are were have do")
_SINGULAR = word_set("is was has does")


def names_nothing(word: str) -> bool:
    """Whether a lower-case word alone is unspecific."""
    return word in _INDEFINITE or word in _GENERIC or word == "new"


def is_number(phrase: str) -> bool:
    """Whether a phrase is a date or begins with a number."""
    return phrase[0].isdigit() or all(word[0].isdigit() or word in CALENDAR for word in phrase.split())


def says(value: str) -> bool:
    """Whether a table's value contains more than a number or a mark."""
    return (
        any(len(word) > 2 and word.isalpha() for word in value.split())
        and value not in _GENERIC
        and value not in _INDEFINITE
    )


def is_preposition(predicate: str) -> bool:
    """Whether a predicate consists of prepositions: "in", "as of"."""
    return all(word in _PREPOSITIONS for word in predicate.split())


def is_relation(predicate: str, of_names: bool = False) -> bool:
    """Whether a predicate can be one relation: it is no imperative ("see"), begins with no preposition, and contains only one
    clause. A predicate between names (`of_names`) may contain two clauses."""
    words = predicate.split()
    if words[0] in _ORDERS or words[0] in ("to", "using") or words[0] in _PREPOSITIONS:
        return False
    if words[-1] == "also" or tagger().lexicon.get(words[-1]) == "MD":
        return False  # "will also · mark connections": the verb is missing
    if words[0] in _BE and next((word for word in words[1:] if word not in _MARKS), "") == "to":
        return False  # "It is up to them to choose", "the rule is never to choose"
    return of_names or not any(word in _JOINS for word in words[1:])


def is_of_another_clause(subject: str, predicate: str) -> bool:
    """Whether the verb cannot belong to this subject: "go to" with a singular subject, or a present participle followed by
    several words."""
    words = predicate.split()
    first = next((word for word in words if word not in _MARKS), "")
    if first.endswith("ing") and len(words) > _PARTICIPLE:
        return True
    tag = tagger().lexicon.get(first, "")
    if subject.endswith("s") or first in _PLURAL:
        return False
    return tag in ("VB", "VBP") or (not tag and first.isalpha() and not first.endswith(("s", "ed")))


def states_outright(subject: str, predicate: str) -> bool:
    """Whether a predicate is a short finite verb phrase that agrees with its subject; such predicates are reliable in technical
    text."""
    words = predicate.split()
    if words[0] == "would" or len(words) > _OUTRIGHT or "that" in words or sum(word in _BE for word in words) > 1:
        return False
    if words[0].endswith("ed") and not _BE.isdisjoint(words):
        return False  # "the value used is stored in"
    lexicon = tagger().lexicon
    head = subject.rpartition(" ")[2]
    plural = lexicon.get(head) == "NNS" or (
        head not in lexicon and head.endswith("s") and not head.endswith(("ss", "us", "is"))
    )
    if words[0] in _CONDITIONS:
        return False
    first = next((word for word in words if word not in _MARKS), "")
    tag = lexicon.get(first, "")
    if first in REPORTS:
        # "claims" may precede a clause that begins like an object.
        return False
    if first in _BE and words[-1] in _WHERE and lexicon.get(words[-2], "NN")[:2] == "NN":
        # "the file is required information in" mixes two statements.
        return False
    if len(words) == 2 and words[1] == "by" and tag in ("VB", "VBP", "NN", "NNS"):
        return False  # "update by Ann Lee": a noun
    if first in _PLURAL or (first not in _SINGULAR and tag in ("VB", "VBP")):
        return plural
    if first in _SINGULAR or tag == "VBZ" or (tag == "NNS" and tagger().is_base_verb(first.removesuffix("s"))):
        return not plural
    # Only a modal, a past tense or a passive remains; nouns are not verbs.
    return tag in ("MD", "VBD", "VBN")


def may_be_noun(predicate: str) -> bool:
    """Whether a verb and a preposition may be a plural noun and its complement: "upload · files to · hub"."""
    verb, _, rest = predicate.partition(" ")
    return rest in _PREPOSITIONS and rest != "as" and tagger().lexicon.get(verb) == "NNS"


def is_short_for(short: str, long: str) -> bool:
    """Whether `short` consists of the initials of `long`: "apa" of "american psychological association"."""
    letters, initials = short.replace(" ", ""), "".join(word[0] for word in long.split())
    return len(letters) > 1 and " " in long and (letters == initials or letters.rstrip("s") == initials)
