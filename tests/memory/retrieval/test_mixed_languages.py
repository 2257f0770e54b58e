"""A drive of eight languages: passages cut, read by the rules, kept and asked, each in its own language."""

import pytest

from consumers.splitting import SplitSettings, split_text
from memory.encoder.hashing import HashEncoder
from memory.openie.rules.extractor import RulesExtractor
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.passage_id import passage_id
from store.store import Store
from store.types import PassageText
from tests.memory.openie.test_rules_sentences_of_languages import STATED
from tests.memory.retrieval.test_reference import commit

ENCODER = HashEncoder(128)
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
    for language, (title, text, _) in STATED.items():
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
    assert found.hits[0].title == STATED[language][0]


@pytest.mark.parametrize("language", QUESTIONS)
def test_names_of_each_language_are_phrases_of_the_graph(memory, language):
    assert memory.snapshot().phrase_row(QUESTIONS[language][1]) is not None
