"""Prose in languages without a tagger degrades to the title and what it mentions; names are found in every language."""

import pytest

from memory.openie.rules.extractor import RulesExtractor
from store.types import MENTION, PassageText

READ = {"Marie Curie", "Köln", "北京", "東京"}
"""Titles in languages whose sentences are read: what these state is in test_rules_sentences_of_languages.py."""


@pytest.mark.parametrize(
    ("title", "text", "mentioned"),
    [
        (
            "Marie Curie",
            "Elle a reçu le prix Nobel avec Pierre Curie en 1903 à Stockholm.",
            {"pierre curie", "stockholm"},
        ),
        (
            "Köln",
            "Die alte Stadt liegt am Rhein. Später war Konrad Adenauer dort Bürgermeister.",
            {"rhein", "konrad adenauer"},
        ),
        ("Москва", "Это столица России. Город основал Юрий Долгорукий.", {"россии", "юрий долгорукий"}),
        ("Αθήνα", "Η πρωτεύουσα της Ελλάδας, όπου έζησε ο Σωκράτης Αθηναίος.", {"σωκράτησ αθηναίοσ"}),
        ("北京", "北京是中华人民共和国的首都。故宫是明朝的皇宫。", {"中华人民共和国", "故宫", "明朝的皇宫"}),
        ("東京", "東京は日本の首都である。《源氏物語》は紫式部の作品。", {"日本", "源氏物語", "紫式部"}),
        ("القاهرة", "القاهرة هي عاصمة جمهورية مصر العربية. يقع نهر النيل فيها.", {"عاصمة جمهورية", "نهر النيل"}),
        ("दिल्ली", "दिल्ली भारत की राजधानी है। हुमायूँ का मकबरा यहाँ है।", {"दिल्ली भारत"}),
    ],
    ids=["French", "German", "Russian", "Greek", "Chinese", "Japanese", "Arabic", "Hindi"],
)
def test_names_are_mentions_of_the_title(title: str, text: str, mentioned: set[str]) -> None:
    [found] = RulesExtractor().extract([PassageText("p", title, text)])
    if title not in READ:
        assert {predicate for _, predicate, _ in found.triples} == {MENTION}
        about = found.entities[0]
        assert mentioned <= {object_ for subject, _, object_ in found.triples if subject == about}
    assert mentioned <= {end for subject, _, object_ in found.triples for end in (subject, object_)}


@pytest.mark.parametrize(
    ("text", "together"),
    [
        (
            "Фарфоровую лампу купил Юрий Долгорукий вместе с Анной Морозовой. Лето было тёплым.",
            ("юрий долгорукий", "анной морозовой"),
        ),
        ("På ön bodde alltid Nils Ek nära Karin Berg. Sommaren var varm och lång.", ("nils ek", "karin berg")),
    ],
    ids=["Russian", "Swedish"],
)
def test_names_in_one_sentence_are_tied_where_grammar_is_not_read_and_marked_so(text, together) -> None:
    [found] = RulesExtractor().extract([PassageText("p", "42", text)])
    assert (together[0], MENTION, together[1]) in found.triples
    assert {predicate for _, predicate, _ in found.triples} <= {MENTION}


def test_mentions_are_bounded_and_the_most_frequent_stay() -> None:
    text = "。".join(f"{chr(0x4E8C + i)}{chr(0x5000 + i)}" for i in range(200)) + "。故宫" * 9
    [found] = RulesExtractor().extract([PassageText("p", "北京", text)])
    assert "故宫" in {object_ for _, _, object_ in found.triples}
    assert len(found.triples) <= 30


def test_english_beside_another_language_is_still_read() -> None:
    text = "Ann Lee lives in Oslo.\n\nElle a été nommée par Pierre Dupont dans la ville."
    [found] = RulesExtractor().extract([PassageText("p", "Ann Lee", text)])
    assert ("ann lee", "lives in", "oslo") in found.triples
    assert ("ann lee", "a été nommée par", "pierre dupont") in found.triples
