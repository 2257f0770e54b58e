"""A text in any language is found by a question in that language, alone and among others."""

import numpy as np
import pytest

from store.index.words.postings import Postings
from store.text.terms import ENGLISH, language_of, passage_terms, query_terms
from tests.store.text.test_language import TEXTS

MORE = {
    "en": "Bakers knead their loaves before sunrise, while the streets are empty and the ovens are getting warm.",
    "de": "Die Bäckereien öffnen vor Sonnenaufgang; die größten Häuser der Straße gehören den Müllers.",
    "fr": "Les boulangers ont oublié les journaux dans les bibliothèques de la ville, qui étaient déjà fermées.",
    "es": "Los panaderos amasan antes del amanecer, y las canciones de la estación suenan en las habitaciones.",
    "it": "I fornai impastano prima dell'alba, e le canzoni della stazione si sentono nelle camere degli ospiti.",
    "pt": "Os padeiros amassam antes do amanhecer, e as canções da estação ouvem-se nos corações das crianças.",
    "nl": "De bakkers kneden hun broden voor zonsopgang, en in de kamers hoort men de liederen van het station.",
    "zh": "面包师在日出之前揉面，那时街道空无一人，烤炉渐渐变热，用Dough2机器。",
    "ja": "パン職人は日の出前に生地をこね、通りには誰もおらず、かまどがＫｉｌｎのように熱くなる。",
    "ru": "Пекари месят тесто до восхода солнца, когда улицы пусты, а печи только нагреваются.",
}
QUESTIONS = {
    "en": ["Which baker kneads?", "a loaf before the sunrise"],
    "de": [
        "Wem gehört das größte Haus?", "groesste", "grosste", "in welchem haus wohnt Mueller", "MULLER", "Bäckerei", "baeckerei"
    ],
    "fr": ["bibliothèque fermée", "la bibliotheque", "oublie", "oublier un journal", "BOULANGERS"],
    "es": ["canción", "cancion", "habitación", "estaciones"],
    "it": ["canzone", "stazioni", "camere", "l'ospite"],
    "pt": ["canções", "cancoes", "corações", "coracoes", "estação"],
    "nl": ["een brood", "kamer", "lied van stations"],
    "zh": ["面包师什么时候揉面？", "烤炉", "dough2", "ＤＯＵＧＨ2"],
    "ja": ["パン職人", "ﾊﾟﾝ職人", "生地", "kiln"],
    "ru": ["пекарь", "улица", "печь"],
}  # fmt: skip


def postings(texts):
    found = Postings()
    length = sum(found.extend(row, text) for row, text in enumerate(texts))
    return found, np.ones(len(texts), np.bool_), length


TOGETHER = [*TEXTS.values(), *MORE.values()]
MIXED = postings(TOGETHER)


@pytest.mark.parametrize(("code", "query"), [(code, query) for code in QUESTIONS for query in QUESTIONS[code]])
def test_a_question_finds_what_is_written_in_its_language(code, query):
    alone, alive, length = postings([TEXTS[code], MORE[code]])
    assert np.argmax(alone.scores(query, alive, length)) == 1
    mixed, alive, length = MIXED
    scores = mixed.scores(query, alive, length)
    assert np.argmax(scores) == TOGETHER.index(MORE[code])
    assert scores.max() > 0


def test_stem_equal_to_an_english_word_does_not_match_the_english_passage():
    """Italian "Roma" and "rom" have the same stem, and no English passage contains it."""
    found, alive, length = postings([TEXTS["en"] + " The ROM chips.", TEXTS["it"] + " Tornò a Roma.", *MORE.values()])
    assert found.scores("Roma", alive, length).tolist()[:2] == [0.0, pytest.approx(3.0, abs=1.5)]


def test_terms_depend_only_on_the_passage_and_english_terms_are_unmarked():
    assert passage_terms(TEXTS["en"]) == passage_terms(TEXTS["en"])
    terms, language, length = passage_terms("The runners ran, and the mayor of the town saw the 2,000 runners run.")
    assert (language, length) == (ENGLISH, 15)
    assert terms["runner"] == 2
    assert all(language_of(term) == ENGLISH for term in terms)
    terms, language, _ = passage_terms(TEXTS["de"])
    assert language == "de"
    assert {language_of(term) for term in terms} == {"de"}


def test_other_spellings_of_a_word_do_not_make_its_passage_longer():
    plain, accents = "The mayor met Mr Muller in the town.", "The mayor met Mr Müller in the town."
    assert passage_terms(plain)[2] == passage_terms(accents)[2] == 8
    for query in ("Muller", "Müller", "MÜLLER", "Mu\u0308ller"):
        assert {"muller"} <= {term for terms in query_terms(query, []) for term in terms}
    found, alive, length = postings([accents, "The mayor met Mr Miller in the town."])
    for query in ("Mueller", "muller", "Müller", "Mu\u0308ller"):
        assert (found.scores(query, alive, length) > 0).tolist() == [True, False], query


def test_function_words_count_only_in_a_query_without_content_words():
    words = {terms[0] for terms in query_terms("Wer wohnt in dem Haus an der Straße?", [])}
    assert "haus" in words
    assert words.isdisjoint({"dem", "der"})
    assert query_terms("der die das", ["de"])
    assert {("the",), ("of",)} <= query_terms(
        "the house of the mayor", []
    ).keys()  # English counts every word, as before


def test_saved_postings_give_equal_scores_in_every_language():
    mixed, alive, length = MIXED
    saved = Postings(mixed.to_arrays(len(TOGETHER)))
    for queries in QUESTIONS.values():
        for query in queries:
            assert saved.scores(query, alive, length).tolist() == mixed.scores(query, alive, length).tolist()


def test_scores_ignore_languages_of_removed_passages():
    found, alive, length = postings([*TEXTS.values(), MORE["en"]])
    alive[1:-1] = False
    length = int(found.lengths(len(alive))[[0, -1]].sum())
    few, everything, _ = postings([TEXTS["en"], MORE["en"]])
    for query in ("bakers", "Der Leuchtturm und die Straße", "灯台"):
        scores = found.scores(query, alive, length)
        assert [scores[0], scores[-1]] == few.scores(query, everything, length).tolist()


def test_triples_are_scored_in_the_language_of_the_question():
    mixed, alive, _ = MIXED
    for query, triple in (("Wem gehört das Haus?", "Häuser gehören Müllers"), ("烤炉", "面包师 用 烤炉")):
        scores = mixed.scores_of(query, ["The lighthouse was rebuilt", triple], alive)
        assert scores[0] == 0 < scores[1]
