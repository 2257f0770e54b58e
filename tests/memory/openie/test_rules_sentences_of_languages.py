"""What sentences of other languages state, read by grammar."""

from concurrent.futures import ThreadPoolExecutor
from unicodedata import normalize

import pytest

from memory.openie.rules.extractor import RulesExtractor
from store.types import MENTION, PassageText


def read(title, text):
    [found] = RulesExtractor().extract([PassageText("p", title, text)])
    return found


STATED = {
    "French": (
        "Moulin d'Aldersund",
        "Le moulin d'Aldersund a été construit en 1871 par Henriette Voss. En 1902, Émile Strand vendit le moulin à la ville. "
        "Nadia Ferrol fonda le journal Nordlicht et travailla à Brême. Elle n'aime pas la mer. Mathieu Lindqvist, qui était "
        "meunier, possède le terrain.",
        [
            ("moulin d aldersund", "a été construit par", "henriette voss"),
            ("moulin d aldersund", "a été construit en", "1871"),
            ("émile strand", "vendit", "moulin"),
            ("nadia ferrol", "fonda", "journal nordlicht"),
            ("nadia ferrol", "travailla à", "brême"),
            ("nadia ferrol", "n aime pas", "mer"),
            ("mathieu lindqvist", "possède", "terrain"),
        ],
    ),
    "Spanish": (
        "Molino de Aldersund",
        "El molino de Aldersund fue construido en 1871 por Enriqueta Voss. En 1902, Emilio Strand vendió el molino a la "
        "ciudad. Nadia Ferrol fundó el periódico Norte y trabajó en Bremen. Ella no vive en Bilbao.",
        [
            ("molino de aldersund", "fue construido por", "enriqueta voss"),
            ("emilio strand", "vendió", "molino"),
            ("nadia ferrol", "fundó", "periódico norte"),
            ("nadia ferrol", "trabajó en", "bremen"),
            ("nadia ferrol", "no vive en", "bilbao"),
        ],
    ),
    "Italian": (
        "Mulino di Aldersund",
        "Il mulino di Aldersund fu costruito nel 1871 da Enrica Voss. Nadia Ferrol fondò il giornale Nord e lavorò a Brema. "
        "Matteo Lindqvist, che era mugnaio, possiede il terreno.",
        [
            ("mulino di aldersund", "fu costruito da", "enrica voss"),
            ("nadia ferrol", "fondò", "giornale nord"),
            ("nadia ferrol", "lavorò a", "brema"),
            ("matteo lindqvist", "possiede", "terreno"),
        ],
    ),
    "Portuguese": (
        "Moinho de Aldersund",
        "O moinho de Aldersund foi construído em 1871 por Henriqueta Voss. Em 1902, Emílio Strand vendeu o moinho à cidade. "
        "Nádia Ferrol fundou o jornal Norte e trabalhou em Bremen. Ela não vive em Braga.",
        [
            ("moinho de aldersund", "foi construído por", "henriqueta voss"),
            ("emílio strand", "vendeu", "moinho"),
            ("nádia ferrol", "fundou", "jornal norte"),
            ("nádia ferrol", "trabalhou em", "bremen"),
            ("nádia ferrol", "não vive em", "braga"),
        ],
    ),
    "Dutch": (
        "Molen van Aldersund",
        "De molen van Aldersund werd in 1871 door Henrike Voss gebouwd. Nadia Ferrol begon de krant Noorderlicht en werkte in "
        "Bremen. In 1902 leidde Emiel Strand de molen. Zij woont niet in Gent.",
        [
            ("molen van aldersund", "werd gebouwd door", "henrike voss"),
            ("nadia ferrol", "begon", "krant noorderlicht"),
            ("nadia ferrol", "werkte in", "bremen"),
            ("emiel strand", "leidde", "molen"),
        ],
    ),
    "Japanese": (
        "アルダースンドの水車",
        "アルダースンドの水車は1871年にヘンリケ・フォスによって建てられた。1902年にエミル・ストランドは水車を町に売った。"
        "田中花子は新聞社を設立し、大阪で働いた。村上春樹は『海辺のカフカ』を書いた作家です。",
        [
            ("アルダースンドの水車", "建てられた によって", "ヘンリケ フォス"),
            ("エミル ストランド", "売った", "水車"),
            ("田中花子", "設立し", "新聞社"),
            ("田中花子", "働いた で", "大阪"),
            ("村上春樹", "です", "作家"),
        ],
    ),
    "German": (
        "Gezeitenmühle Aldersund",
        "Die Gezeitenmühle Aldersund wurde am 3. Mai 1871 von Henrike Voß gebaut. Im Jahr 1902 verkaufte Emil Strand die Mühle "
        "an die Stadt. Weil das Wasser stieg, verließ Nadja Ferrol den Ort. Sie gründete die Zeitung Nordlicht und arbeitete "
        "später in Bremen. Matteo Lindqvist, der ein Müller war, besitzt das Grundstück.",
        [
            ("gezeitenmühle aldersund", "wurde gebaut von", "henrike voss"),
            ("gezeitenmühle aldersund", "wurde gebaut am", "3 mai 1871"),
            ("emil strand", "verkaufte", "mühle"),
            ("nadja ferrol", "verliess", "ort"),
            ("nadja ferrol", "gründete", "zeitung nordlicht"),
            ("nadja ferrol", "arbeitete in", "bremen"),
            ("matteo lindqvist", "besitzt", "grundstück"),
        ],
    ),
    "Chinese": (
        "青石灯塔",
        "青石灯塔是中国的灯塔。林小梅于1902年设计了青石灯塔。张伟毕业于清华大学，后来在上海工作。"
        "海洋公司没有出售灯塔。",
        [
            ("青石灯塔", "是", "中国的灯塔"),
            ("林小梅", "设计", "青石灯塔"),
            ("林小梅", "设计 于", "1902"),
            ("张伟", "毕业 于", "清华大学"),
            ("张伟", "工作 在", "上海"),
        ],
    ),
}


@pytest.mark.parametrize("language", STATED)
def test_what_a_sentence_states_becomes_a_triple(language):
    title, text, expected = STATED[language]
    triples = read(title, text).triples
    assert [triple for triple in expected if triple not in triples] == [], triples


@pytest.mark.parametrize("language", STATED)
def test_most_triples_are_statements_and_not_mentions(language):
    title, text, _ = STATED[language]
    predicates = [predicate for _, predicate, _ in read(title, text).triples]
    assert predicates.count(MENTION) * 3 < len(predicates) * 2


def test_german_common_nouns_are_no_names():
    text = "Der Bäcker wohnt mit seiner Katze in einem Haus am Hafen von Rostock. Sein Freund heißt Ole Brandt."
    assert {"rostock", "ole brandt"} <= set(read("Ein Bäcker", text).entities) - {
        "bäcker",
        "katze",
        "haus",
        "hafen",
        "freund",
    }
    assert {"bäcker", "katze", "haus", "hafen", "freund"}.isdisjoint(read("Der Hafen am Abend", text).entities)


@pytest.mark.parametrize(
    ("title", "text", "denied"),
    [
        ("Emil Strand", "Emil Strand verkaufte das Haus nicht an die Stadt Kiel.", "nicht"),
        ("海洋公司", "林小梅不喜欢上海。", "不"),
    ],
    ids=["German", "Chinese"],
)
def test_what_is_denied_keeps_its_mark(title, text, denied):
    predicates = {predicate for _, predicate, _ in read(title, text).triples} - {MENTION}
    assert predicates
    assert all(denied in predicate.split() for predicate in predicates), predicates


@pytest.mark.parametrize(
    "text", ["Baute Emil Strand das Haus in Kiel?", "林小梅住在上海吗？"], ids=["German", "Chinese"]
)
def test_a_question_states_nothing(text):
    assert {predicate for _, predicate, _ in read("Notizen", text).triples} <= {MENTION}


def test_what_hangs_on_another_clause_is_not_stated():
    triples = read("Hafen", "Wenn Emil Strand das Schiff Alma verkauft, bleibt Nadja Ferrol in Kiel.").triples
    assert ("nadja ferrol", "bleibt in", "kiel") in triples
    assert not any("schiff" in object_ for _, _, object_ in triples)


def test_english_in_a_text_of_another_language_is_read_as_english():
    text = "Die alte Stadt liegt am Fluss und ist im Winter oft verschneit.\n\nAnn Lee lives in Oslo."
    assert ("ann lee", "lives in", "oslo") in read("Die Stadt", text).triples


@pytest.mark.parametrize(
    "text",
    [
        "的" * 3000,
        "。，" * 3000,
        "Der " * 3000 + "ist schön und der Ort ist alt.",
        "Ä" * 5000 + " ist der Ort.",
        "是" * 5000,
    ],
    ids=["of", "marks", "articles", "letters", "verbs"],
)
def test_hostile_prose_costs_no_more_than_other(text):
    assert len(read("Der Titel ist das", text + " Das ist der Ort, in dem wir wohnen.").triples) < 400


def test_threads_may_share_the_taggers():
    texts = [(title, f"{text} {n}") for title, text, _ in STATED.values() for n in range(6)]
    alone = [read(*each).triples for each in texts]
    with ThreadPoolExecutor(4) as threads:
        assert [found.triples for found in threads.map(lambda each: read(*each), texts)] == alone


@pytest.mark.parametrize("title", ["École", "ガンダ工場"])
def test_letters_and_their_marks_may_stand_apart(title):
    text = {
        "École": "L'école de Béziers a été fondée par Hélène Père en 1902.",
        "ガンダ工場": "ガンダ工場は大阪にある。田中部長がガンダ工場を設立した。",
    }[title]
    apart = read(normalize("NFD", title), normalize("NFD", text))
    assert len(apart.triples) > 2
    assert apart.triples == read(title, text).triples


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("Redbird rendert keine Syntax. Das Archiv liegt in der Stadt.", ("redbird", "rendert keine", "syntax")),
        ("Keine Firma kaufte Redbird. Das Archiv liegt in der Stadt.", ("firma", "keine kaufte", "redbird")),
        ("Redbird ne possède aucun terrain dans la ville.", ("redbird", "ne possède aucun", "terrain")),
        ("Redbird heeft geen archief in de stad.", ("redbird", "heeft geen", "archief")),
    ],
)
def test_a_determiner_that_denies_stays_in_the_predicate(text, denied):
    found = read("Redbird", text).triples
    assert denied in found
    assert {predicate for subject, predicate, object_ in found if (subject, object_) == denied[::2]} == {denied[1]}
