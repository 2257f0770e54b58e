"""Extracts the content words of a query, that is, omits function words.

Words such as "how" and "which" are common in questions and rare in passages, so BM25 would give them a high weight: the query
"怎样创建交换空间" would find a passage that contains "怎样". A Chinese query is segmented into words before it is split into
pairs of characters, so that no pair contains half of a function word. English queries keep all words, because removing function
words did not improve the results.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from store.text.language import FUNCTION_WORDS, detect_language
from store.text.words import is_unspaced, split_words

IDLE_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(text.split())
    for code, text in {
        "de": "der die das den dem des ein eine einen einem einer eines und oder aber denn sondern als wie wenn ob dass daß "
        "weil da damit bevor nachdem während in im ins an am ans auf aus bei beim mit nach von vom zu zum zur für durch "
        "über unter um ohne gegen zwischen vor hinter seit bis er sie es ich du wir ihr man mich mir dich dir sich uns "
        "euch ihn ihm ihnen mein meine meinen meinem dein deine sein seine seinen seinem seiner seines ihre ihren ihrem "
        "ihrer ihres unser unsere dieser diese dieses diesen diesem jener jene jenes alle allem allen aller alles jede "
        "jeder jedes jeden jedem kein keine keinen keinem keiner wer wen wem wessen was welche welcher welches welchen "
        "welchem wann wo wohin woher warum weshalb wieso womit wozu wodurch worin woran worauf wovon wofür ist sind war "
        "waren bin bist sei wäre wird werden wurde wurden worden hat haben hatte hatten habe kann können konnte könnte "
        "muss müssen musste soll sollen sollte darf dürfen will wollen möchte lässt gibt nicht nur auch noch schon sehr so "
        "dann dort hier mehr immer wieder etwas nichts jemand niemand selbst derselbe dieselbe dasselbe dieselben "
        "denselben selben dazu dabei dafür davon darauf",
        "fr": "le la les l un une des du de d et ou mais donc or ni car que qu qui quoi dont où quand comme si lorsque "
        "puisque parce afin à au aux en dans par pour sur sous avec sans chez vers entre depuis pendant après avant contre "
        "lors je j tu il elle on nous vous ils elles me m te t se s lui leur y moi toi eux mon ma mes ton ta tes son sa ses "
        "notre nos votre vos leurs ce c cet cette ces cela ça ceci celui celle ceux celles quel quelle quels quelles "
        "lequel laquelle lesquels lesquelles comment pourquoi combien quelque quelques chaque tout toute tous toutes aucun "
        "aucune même mêmes autre autres plusieurs est sont était étaient être été soit sera serait es suis ai as a ont "
        "avait avaient avoir eu ait aura peut peuvent pouvoir pourrait doit doivent devoir faut fait faire va vont ne n pas "
        "plus jamais rien non aussi très encore déjà ici là alors ainsi plutôt personne",
        "es": "el la los las un una unos unas y e o u ni pero sino que qué quién quiénes quien quienes cuál cuáles cual "
        "cuales cuándo cuando dónde donde adónde cómo como cuánto cuánta cuántos cuántas si porque aunque mientras de del a "
        "al en con por para sin sobre entre desde hasta hacia contra según yo tú él ella ello nosotros ellos ellas usted "
        "ustedes me te se le les lo nos mi mis tu tus su sus este esta estos estas ese esa esos esas esto eso es son era "
        "eran fue fueron ser será está están estar ha han había haber hay he puede pueden poder debe deben no ya muy más "
        "menos también así todo toda todos todas otro otra otros otras cada algo alguien alguno alguna nada nadie hace "
        "hacer",
        "it": "il lo la i gli le l un uno una e ed o od ma né che chi cui cosa cos quale quali quando dove come perché quanto "
        "quanta quanti quante se mentre di del dello della dei degli delle a al allo alla ai agli alle da dal dallo dalla "
        "dai dagli dalle in nel nello nella nei negli nelle con su sul sullo sulla sui sugli sulle per tra fra senza io tu "
        "egli lui lei noi voi essi loro mi ti si ci vi ne mio mia suo sua suoi sue questo questa questi queste quello "
        "quella quelli quelle è sono era erano fu furono essere stato ha hanno aveva avevano avere può possono potere deve "
        "devono viene vengono non più anche già molto ogni tutto tutta tutti tutte altro altra altri altre qualche fa fare",
        "pt": "o a os as um uma uns umas e ou mas nem que quê quem qual quais quando onde aonde como porque porquê quanto "
        "quanta quantos quantas se enquanto de do da dos das em no na nos nas ao aos à às por pelo pela pelos pelas para "
        "com sem sobre entre desde até contra eu tu ele ela nós eles elas você vocês me te lhe lhes meu minha seu sua seus "
        "suas este esta estes estas esse essa esses essas isto isso é são era eram foi foram ser está estão estar há tem "
        "têm tinha ter pode podem poder deve devem não já muito mais menos também assim todo toda todos todas outro outra "
        "outros outras cada algo alguém nada ninguém faz fazer",
        "nl": "de het een en of maar want dat die dit deze wie wat welke welk wanneer waar waarom hoe hoeveel waarmee "
        "waarvoor waarvan waarin waardoor als dan toen omdat terwijl in op aan van met voor bij door over onder om zonder "
        "tegen tussen uit naar tot na te er ik jij je hij zij ze wij we jullie mij me jou hem haar ons hun mijn jouw zijn "
        "is was waren ben bent wordt worden werd werden heeft hebben had hadden kan kunnen kon moet moeten mag mogen wil "
        "willen zal zullen zou niet geen nog ook al zeer meer men zich elk elke alle alles iets iemand niets niemand doet "
        "doen",
        "zh": "是 有 能 可以 会 应该 应 要 需要 请 用 使用 让 使 得 所",
    }.items()
}
"""Function words by language: articles, pronouns, question words, prepositions, conjunctions, auxiliaries. Function words carry
no information about the subject of a query. Words that are also nouns are not included ("état", "Weg", "parte"). The Chinese
set contains only words whose part of speech the tagger does not recognise."""

IDLE_TAGS: dict[str, frozenset[str]] = {
    "zh": frozenset(re.findall(r"\w+", "r u uj ul uz ug ud uv p c d y e o x w k h"))
}
"""The tagger's codes for parts of speech that are function words: pronouns and question words, particles, prepositions,
conjunctions, adverbs, punctuation."""

MIN_VOTES = 2
"""Minimum number of function words of one language that can override the detector. If a text has only a few words, CLD2 often
reports a related language."""
SEGMENTED_CHARS = 4_000
"""Number of characters at the beginning of a Chinese query that are segmented into words. The remaining query is split into
pairs of characters."""
CACHED_QUERIES = 64
"""Number of queries whose words are cached, because several steps of a query need them."""
_ENGLISH = "en"


@lru_cache(CACHED_QUERIES)
def content_words(query: str) -> tuple[str, ...]:
    """Returns the query's words without function words, in the order of `split_words`. Returns all words if all are function
    words."""
    everything = tuple(split_words(query))
    code = query_language(query)
    if code == "zh":
        kept = tuple(_chinese_content(query))
    else:
        idle = IDLE_WORDS.get(code, frozenset())
        kept = tuple(word for word in everything if word not in idle)
    return kept or everything


@lru_cache(CACHED_QUERIES)
def query_language(query: str) -> str:
    """Returns the code of the query's language; "" if unknown. The language is the detector's result unless function words
    indicate another one."""
    code = detect_language(query)
    words = list(split_words(query))
    votes = {each: sum(word in idle for word in words) for each, idle in IDLE_WORDS.items()}
    votes[_ENGLISH] = sum(word in _ENGLISH_WORDS for word in words)
    best = max(votes, key=lambda each: (votes[each], each == code))
    return best if votes[best] >= MIN_VOTES and votes[best] > votes.get(code, 0) else code


_ENGLISH_WORDS = FUNCTION_WORDS[_ENGLISH] | frozenset(
    re.findall(
        r"\w+",
        "who whom whose what when where why how can could do does did has had i me my you your we one a if so there this "
        "these those would will should",
    )
)


def _chinese_content(query: str) -> Iterator[str]:
    """Yields the pairs of characters in each run of content words, and the words in alphabetic scripts."""
    import rjieba  # imported here because the import loads the dictionary

    run = ""
    for word, tag in rjieba.tag(query[:SEGMENTED_CHARS]):
        if is_unspaced(word) and tag not in IDLE_TAGS["zh"] and word not in IDLE_WORDS["zh"]:
            run += word
            continue
        yield from split_words(run)
        run = ""
        if not is_unspaced(word):
            yield from split_words(word)
    yield from split_words(run)
    yield from split_words(query[SEGMENTED_CHARS:])
