"""Every way of retrieval gives the scores of the papers' formulas, to 1e-6, whatever the memory went through."""

import json
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

import store.index.delta_csr
from memory.batch_encoding import with_vectors
from memory.encoder import make_encoder
from memory.openie.hipporag_file import read_hipporag_file
from memory.phrase_normalisation import normalise_phrase
from memory.retrieval.linking.query_entities import query_entities
from memory.retrieval.modes import MODES
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import SETTINGS as RETRIEVAL_SETTINGS
from memory.retrieval.settings import RetrievalSettings
from memory.types import Encoder
from store.store import Store
from store.text.terms import passage_terms, query_terms
from store.types import Batch, Document, PassageRef, PassageText, SynonymRule, Triple, passage_id
from tests.memory.retrieval.reference import Reference, Settings

SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "musique"
WORDS = ["amber", "bolt", "cedar", "dune", "ember", "fjord", "grove", "Heron", "Ines Quade", "Tollmin", "Widow Shaft"]
TITLES = ["amber bolt", "Heron", "Ines Quade (painter)", "Tollmin", "ember", "Widow Shaft", ""]
ENCODER = make_encoder("hash", "64", 64, "cpu")
TitledText = tuple[str, str, Collection[Triple]]
"""A passage's title, text and triples."""


def commit(
    memory: Store, documents: Mapping[str, TitledText], removed: Sequence[str] = (), *, encoder: Encoder | None = None
) -> None:
    """`documents`: {uri: (title, text, triples)}."""
    texts = {uri: PassageText(passage_id(t, x), t, x) for uri, (t, x, _) in documents.items()}
    batch = Batch(
        tuple(
            Document(uri, "test", passages=(PassageRef(texts[uri].id, {}, tuple(triples)),))
            for uri, (_, _, triples) in documents.items()
        ),
        tuple(removed),
        tuple({text.id: text for text in texts.values()}.values()),
    )
    memory.commit(with_vectors(memory, encoder or ENCODER, batch))


def living(documents):
    """What the reference is given: each passage once, with the triples of all its documents."""
    passages: dict[tuple[str, str], set[Triple]] = {}
    for title, text, triples in documents.values():
        passages.setdefault((title, text), set()).update(triples)
    return [(passage_id(t, x), t, x, tuple(sorted(triples))) for (t, x), triples in passages.items()]


def document(chance):
    """A passage of some words and one to six triples among a few phrases."""
    phrases = [normalise_phrase(" ".join(chance.sample(WORDS, chance.randint(1, 2)))) for _ in range(5)]
    triples = {
        (chance.choice(phrases), chance.choice(["is", "made", ""]), chance.choice(phrases))
        for _ in range(chance.randint(0, 6))
    }
    text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(3, 30)))
    return chance.choice(TITLES), text, sorted(triples)


def reference(documents, **rule):
    return Reference(living(documents), lambda text: ENCODER.encode([text])[0], ENCODER.encode_query, **rule)


class HalfKnown(Encoder):
    """An encoder that has words for half of what it is asked, and for no word of one."""

    identity = ENCODER.identity
    encode, encode_query = ENCODER.encode, ENCODER.encode_query

    def known_words(self, text):
        return 0.5 if " " in text else 0.0


class TwoInstructions(Encoder):
    """An encoder with an instruction of its own for triples."""

    identity = ENCODER.identity
    encode, encode_query = ENCODER.encode, ENCODER.encode_query

    def encode_triple_query(self, text):
        return ENCODER.encode_query(f"made {text} cedar")


class PhraseInstructions(Encoder):
    """An encoder with instructions of its own for phrases: of a query, and of a name in one."""

    identity = ENCODER.identity
    encode, encode_query = ENCODER.encode, ENCODER.encode_query

    def __init__(self):
        self.asked = []

    def encode_phrase_query(self, text, is_name):
        self.asked.append((text, is_name))
        return ENCODER.encode_query(f"made {text} cedar")


def check(snapshot, expected, query, mode, settings=None, reader=None, encoder=ENCODER):
    """The product's whole ranking against the reference's scores; `reader` stands for the model that names entities."""
    settings = settings or Settings()
    given = {key: value for key, value in asdict(settings).items() if key in RETRIEVAL_SETTINGS}
    found = retrieve(snapshot, encoder, query, mode, 10_000, RetrievalSettings(**given), entity_reader=reader)
    said = query_entities(query, snapshot) if reader is None else reader.names
    names = [normalise_phrase(name) for name in said]
    answer = expected.answer(mode, query, names, settings)
    got = {hit.id: hit.score for hit in found.hits}
    assert got.keys() == answer.scores.keys(), (mode, query)
    assert got == pytest.approx(answer.scores, abs=1e-6), (mode, query)
    # Ranked as the reference ranks them, equal scores by id; the last digits are rounding on both sides.
    wanted = sorted(answer.scores, key=lambda id: (-round(answer.scores[id], 8), id))
    for mine, theirs in zip(found.hits, wanted, strict=True):
        assert mine.id == theirs or abs(answer.scores[mine.id] - answer.scores[theirs]) < 2e-8, (mode, query)
    assert {seed.phrase: seed.weight for seed in found.seeds} == pytest.approx(answer.seeds, abs=1e-6)
    assert [(t.subject, t.predicate, t.object) for t in found.triples] == [triple for triple, _ in answer.triples]
    assert [t.score for t in found.triples] == pytest.approx([score for _, score in answer.triples], abs=1e-5)
    return found


QUERIES = [
    "Where is Tollmin?",
    "ember",
    "Who made the Heron of Ines Quade near Widow Shaft",
    "cedar dune cedar",
    "zzz",
    "amber bolt cedar",
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_mode_equals_the_reference_after_changes_and_a_restart(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.index.delta_csr, "FOLD_MIN_ENTRIES", [10, 60, 50_000][seed])
    chance = random.Random(seed)
    rule = SynonymRule(0.6)
    documents: dict[str, TitledText] = {}
    memory = Store(tmp_path / "store", ENCODER.identity, rule)
    for step in range(12):
        changes = {f"file:///{chance.randint(0, 30)}": document(chance) for _ in range(chance.randint(1, 6))}
        gone = [uri for uri in chance.sample(sorted(documents), len(documents) // 6) if uri not in changes]
        commit(memory, changes, gone)
        documents = {uri: each for uri, each in documents.items() if uri not in gone} | changes
        if step == 7:
            memory.close()
            memory = Store(tmp_path / "store", ENCODER.identity, rule)
    expected = reference(documents, threshold=0.6)
    with memory:
        for mode in MODES:
            for query in QUERIES:
                check(memory.snapshot(), expected, query, mode)


SETTINGS = [
    Settings(passage_nodes=False),
    Settings(top_triples=1, seed_phrases=1),
    Settings(top_triples=40, seed_phrases=30),
    Settings(passage_weight=0.0, damping=0.85),
    Settings(passage_weight=1.0, damping=0.1),
    Settings(passage_share=0.1, name_share=0.0, temperature=1.0),
    Settings(passage_share=0.9, name_share=1.0, temperature=0.05),
    Settings(node_specificity=False),
    Settings(synonym_edges=False),
    Settings(walk="neighbours"),
    Settings(walk="neighbours", synonym_edges=False, node_specificity=False),
    Settings(walk="none"),
    Settings(hop_share=0.0),
    Settings(hop_share=1.0, temperature=0.5),
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
def test_every_mode_equals_the_reference_with_changed_settings(tmp_path: Path, settings: Settings) -> None:
    chance = random.Random(7)
    documents = {f"file:///{at}": document(chance) for at in range(70)}
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, documents)
        expected = reference(documents)
        for mode in MODES:
            for query in QUERIES[:3]:
                check(memory.snapshot(), expected, query, mode, settings)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data/musique")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("variants", "modes"), [(True, set(MODES) - {"bm25"}), (False, {"hipporag", "hipporag2"})], ids=["ours", "papers"]
)
def test_every_mode_equals_the_reference_on_recorded_triples(tmp_path: Path, variants: bool, modes: set[str]) -> None:
    """With hippod's synonyms, and the papers' modes with the papers' synonyms: all pairs of cosine 0.8 and more."""
    documents = {}
    for number, each in enumerate(read_hipporag_file(SHARED / "openie.json")):
        if number % 60 == 0:
            documents[f"file:///{number}"] = (each.title, each.text, each.triples)
    questions = [entry["question"] for entry in json.loads((SHARED / "questions.json").read_text())[:2]]
    with Store(tmp_path / "store", ENCODER.identity, SynonymRule(variants=variants)) as memory:
        commit(memory, documents)
        expected = reference(documents, variants=variants, passage_terms=passage_terms, query_terms=query_terms)
        for query in questions:
            for mode in modes:
                check(memory.snapshot(), expected, query, mode)


def test_triples_use_the_query_vector_of_the_triple_instruction(
    tmp_path: Path,
) -> None:
    chance = random.Random(5)
    documents = {f"file:///{at}": document(chance) for at in range(25)}
    encoder = TwoInstructions()
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, documents)
        expected = reference(documents, triple_query_vector=encoder.encode_triple_query)
        changed = 0
        for mode in ("hipporag2", "fused", "dense"):
            for query in QUERIES[:3]:
                found = check(memory.snapshot(), expected, query, mode, encoder=encoder)
                plain = retrieve(memory.snapshot(), ENCODER, query, mode, 10_000, RetrievalSettings())
                changed += found.triples != plain.triples
        assert changed >= 4, "dense links no triples"


def test_each_mode_that_links_phrases_uses_its_own_query_instruction(tmp_path: Path) -> None:
    chance = random.Random(5)
    documents = {f"file:///{at}": document(chance) for at in range(25)}
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, documents)
        query, changed = f"{QUERIES[0]} Unheard Name", 0
        for mode, is_name in (("query-to-node", False), ("ner-to-node", True), ("hipporag", True)):
            encoder = PhraseInstructions()
            found = retrieve(memory.snapshot(), encoder, query, mode, 10_000, RetrievalSettings())
            assert {kind for _, kind in encoder.asked} == {is_name}, mode
            assert ((query, False) in encoder.asked) is not is_name
            changed += (
                found.seeds != retrieve(memory.snapshot(), ENCODER, query, mode, 10_000, RetrievalSettings()).seeds
            )
        for mode in ("dense", "hipporag2"):
            encoder = PhraseInstructions()
            retrieve(memory.snapshot(), encoder, query, mode, 10, RetrievalSettings())
            assert encoder.asked == [], mode
        assert changed >= 1


def test_cosines_are_weighted_by_the_share_of_known_query_words(tmp_path: Path) -> None:
    chance = random.Random(6)
    documents = {f"file:///{at}": document(chance) for at in range(25)}
    encoder, changed = HalfKnown(), 0
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, documents)
        expected = reference(documents, known_words=encoder.known_words)
        for query in QUERIES[:5]:
            found = check(memory.snapshot(), expected, query, "fused", encoder=encoder)
            plain = retrieve(memory.snapshot(), ENCODER, query, "fused", 10_000, RetrievalSettings())
            changed += [hit.score for hit in found.hits] != [hit.score for hit in plain.hits]
    assert changed >= 3


def test_top_k_equals_the_start_of_the_full_ranking(tmp_path: Path) -> None:
    """The walk may end once they are sure."""
    chance = random.Random(3)
    with Store(tmp_path / "store", ENCODER.identity) as memory:
        commit(memory, {f"file:///{at}": document(chance) for at in range(200)})
        snapshot = memory.snapshot()
        for mode in ("hipporag2", "fused", "query-to-node"):
            for query in QUERIES:
                whole = retrieve(snapshot, ENCODER, query, mode, 10_000, RetrievalSettings()).hits
                for k in (1, 5, 20):
                    few = retrieve(snapshot, ENCODER, query, mode, k, RetrievalSettings()).hits
                    assert [hit.id for hit in few] == [hit.id for hit in whole[:k]]
                    assert [hit.score for hit in few] == pytest.approx([hit.score for hit in whole[:k]], abs=1e-6)
