"""A drive of eight languages: passages cut, read by the rules, kept and asked, each in its own language."""

import pytest

from consumers.splitting import SplitSettings, split_text
from memory.encoder.hashing import HashEncoder
from memory.openie.rules.extractor import RulesExtractor
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.store import Store
from store.types import PassageText, passage_id
from tests.memory.retrieval.test_reference import commit

ENCODER = HashEncoder(128)
TEXTS = {
    "French": (
        "Moulin d'Aldersund",
        "Le moulin d'Aldersund a été construit en 1871 par Henriette Voss. En 1902, Émile Strand vendit le moulin "
        "à la ville. Nadia Ferrol fonda le journal Nordlicht et travailla à Brême. Elle n'aime pas la mer. "
        "Mathieu Lindqvist, qui était meunier, possède le terrain.",
    ),
    "Spanish": (
        "Molino de Aldersund",
        "El molino de Aldersund fue construido en 1871 por Enriqueta Voss. En 1902, Emilio Strand vendió el "
        "molino a la ciudad. Nadia Ferrol fundó el periódico Norte y trabajó en Bremen. Ella no vive en Bilbao.",
    ),
    "Italian": (
        "Mulino di Aldersund",
        "Il mulino di Aldersund fu costruito nel 1871 da Enrica Voss. Nadia Ferrol fondò il giornale Nord e "
        "lavorò a Brema. Matteo Lindqvist, che era mugnaio, possiede il terreno.",
    ),
    "Portuguese": (
        "Moinho de Aldersund",
        "O moinho de Aldersund foi construído em 1871 por Henriqueta Voss. Em 1902, Emílio Strand vendeu o moinho "
        "à cidade. Nádia Ferrol fundou o jornal Norte e trabalhou em Bremen. Ela não vive em Braga.",
    ),
    "Dutch": (
        "Molen van Aldersund",
        "De molen van Aldersund werd in 1871 door Henrike Voss gebouwd. Nadia Ferrol begon de krant Noorderlicht "
        "en werkte in Bremen. In 1902 leidde Emiel Strand de molen. Zij woont niet in Gent.",
    ),
    "Japanese": (
        "アルダースンドの水車",
        "アルダースンドの水車は1871年にヘンリケ・フォスによって建てられた。1902年にエミル・ストランドは水車を町に売った。田中花子は新聞社を設立し、大阪で働いた。村上春樹は『海辺のカフカ』を書いた作家です。",
    ),
    "German": (
        "Gezeitenmühle Aldersund",
        "Die Gezeitenmühle Aldersund wurde am 3. Mai 1871 von Henrike Voß gebaut. Im Jahr 1902 verkaufte Emil "
        "Strand die Mühle an die Stadt. Weil das Wasser stieg, verließ Nadja Ferrol den Ort. Sie gründete die "
        "Zeitung Nordlicht und arbeitete später in Bremen. Matteo Lindqvist, der ein Müller war, besitzt das "
        "Grundstück.",
    ),
    "Chinese": (
        "青石灯塔",
        "青石灯塔是中国的灯塔。林小梅于1902年设计了青石灯塔。张伟毕业于清华大学，后来在上海工作。海洋公司没有出售灯塔。",
    ),
}
QUESTIONS = {
    "German": ("Wer besitzt das Grundstück?", "nadja ferrol"),
    "French": ("Qui possède le terrain d'Émile Strand ?", "mathieu lindqvist"),
    "Spanish": ("¿Quién vendió el molino a la ciudad?", "emilio strand"),
    "Italian": ("Chi possiede il terreno del mugnaio?", "matteo lindqvist"),
    "Portuguese": ("Quem fundou o jornal?", "nádia ferrol"),
    "Dutch": ("Wie begon de krant?", "nadia ferrol"),
    "Chinese": ("谁设计了青石灯塔？", "林小梅"),
    "Japanese": ("水車を町に売ったのは誰ですか？", "エミル ストランド"),
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    documents = {}
    extractor = RulesExtractor()
    for language, (title, text) in TEXTS.items():
        [passage] = split_text(text, title, SplitSettings())
        read = PassageText(passage_id(passage.title, passage.text), passage.title, passage.text)
        documents[f"file:///{language}"] = (passage.title, passage.text, extractor.extract([read])[0].triples)
    with Store(tmp_path_factory.mktemp("languages") / "store", ENCODER.identity) as opened:
        commit(opened, documents, encoder=ENCODER)
        yield opened


@pytest.mark.parametrize("language", QUESTIONS)
@pytest.mark.parametrize("mode", ["bm25", "fused"])
def test_a_question_finds_what_is_written_in_its_language(memory, mode, language):
    query, _ = QUESTIONS[language]
    found = retrieve(memory.snapshot(), ENCODER, query, mode, 3, RetrievalSettings())
    assert found.hits[0].title == TEXTS[language][0]


@pytest.mark.parametrize("language", QUESTIONS)
def test_names_of_each_language_are_phrases_of_the_graph(memory, language):
    assert memory.snapshot().phrase_row(QUESTIONS[language][1]) is not None
