"""Two near phrases are synonyms only if their texts say the same thing."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import store.change.synonym_change
import store.checkpoint.files
from bench.support.synonym_labels import shares
from store.export.json_lines import export_lines
from store.index.synonyms.phrase_variants import are_variants, can_be_synonyms
from store.maintenance.synonym_recall import measure_recall
from store.types import SynonymRule
from store.verify.verify import verify
from tests.store import oracle
from tests.store.small_store import HOSTILE, NUMBERED, PHRASES, complete, open_store

LABELLED = json.loads((Path(__file__).parents[4] / "bench/support/labelled_synonyms.json").read_text("utf-8"))
CERTAIN = 0.999

VARIANTS = {
    "spelling": ["organise ~ organize", "theatre ~ theater", "labour party ~ labor party", "catherine ~ katherine"],
    "accents": ["béatrice ~ beatrice", "thüringia ~ thuringia", "chūl khoshk ~ chul khoshk"],
    "English forms": ["file ~ files", "country ~ countries", "sync ~ syncing", "use ~ uses", "tag ~ tagging"],
    "German forms": ["interner link ~ internen link", "die gruppe ~ gruppen", "anderen geräten ~ andere geräte"],
    "French and Spanish plurals": ["mot clé ~ mots clés", "sección ~ secciones"],
    "Russian forms": ["заметка ~ заметки", "внутренняя ссылка ~ внутренней ссылки"],
    "Finnish forms": ["oulu ~ oulussa", "tiedosto ~ tiedostossa", "asetuksissa ~ asetuksilla"],
    "Greek and Arabic forms": ["αρχείο ~ αρχεία", "كتاب ~ الكتاب"],
    "word order": ["tab scorecard ~ scorecard tab", "university of oxford ~ oxford university"],
    "linking words": ["king of the belgians ~ belgian king", "the brady bunch ~ brady bunch", "a file ~ file"],
    "words joined": ["mac os ~ macos", "mental well being ~ mental wellbeing", "song writer ~ songwriters"],
    "scripts apart": ["markdown 表格 ~ markdown表格"],
    "initials": ["major league baseball ~ mlb", "united states of america ~ usa"],
}
DIFFERENT = {
    "one word more": [
        "hotkey ~ hotkey helper",
        "group ~ group a",
        "obsidian ~ obsidian uri",
        "obsidian ~ obsidians app",
    ],
    "one other word": ["ctrl a ~ ctrl p", "paternal grandmother ~ maternal grandmother", "gold medal ~ silver medal"],
    "another key": ["cmd c ~ cmd x", "ctrl ~ ctrl s", "ctrl shift ~ ctrl shift t"],
    "another person": ["johann michael bach ~ johann christoph bach", "amir ~ amira", "frederico ~ frederica"],
    "a number": ["report 2023 ~ report 2024", "ext3 ~ ext4", "debian 7 ~ debian 12", "python 3 11 ~ python 31 1"],
    "a numeral": [
        "world war i ~ world war ii",
        "theodred ii ~ theodred iii",
        "louis vii ~ louis viii",
        "bbc one ~ bbc two",
    ],
    "a derived word": ["export ~ exporter", "prussia ~ prussian", "senate ~ senator", "central ~ centralized"],
    "a common beginning": ["sync ~ syncthing", "zusammenfassung ~ zusammenarbeit", "eigenschaft ~ eigenschaftentyp"],
    "a word of another script": ["markdown表格 ~ markdown链接", "克隆git ~ git仓库", "北京 ~ 南京"],
}
OTHER_INITIALS = ["major league baseball ~ mls", "national basketball association ~ nbl", "us senate ~ uss"]


def each(groups):
    return [
        pytest.param(*pair.split(" ~ "), id=f"{group}: {pair}".encode("unicode_escape").decode())
        for group, pairs in groups.items()
        for pair in pairs
    ]


@pytest.mark.parametrize(("one", "other"), each(VARIANTS))
def test_variants_of_a_name_are_synonyms(one: str, other: str) -> None:
    assert are_variants(one, other)


@pytest.mark.parametrize(("one", "other"), each(DIFFERENT))
def test_names_of_different_things_are_no_synonyms_at_any_cosine(one: str, other: str) -> None:
    assert not can_be_synonyms(one, other, CERTAIN, 0.8)


@pytest.mark.parametrize("pair", OTHER_INITIALS)
def test_initials_that_do_not_match_all_words_are_no_variant(pair: str) -> None:
    assert not are_variants(*pair.split(" ~ "))


@pytest.mark.parametrize(
    ("pair", "cosine", "threshold", "expected"),
    [
        ("kids ~ children", 0.88, 0.8, True),
        ("kids ~ children", 0.87, 0.8, False),
        ("kids ~ children", 0.95, 0.93, False),
        ("template ~ vorlage", 0.96, 0.9, True),
        ("seven films ~ nine movies", CERTAIN, 0.8, False),
        ("film 7 ~ movie", CERTAIN, 0.8, False),
    ],
)
def test_phrases_without_a_common_word_need_a_high_cosine(
    pair: str, cosine: float, threshold: float, expected: bool
) -> None:
    one, other = pair.split(" ~ ")
    assert can_be_synonyms(one, other, cosine, threshold) is expected


words = st.sampled_from(
    ["mac", "os", "macs", "king", "kings", "of", "the", "a", "ii", "2", "ctrl", "表格", "file", "filing"]
)


@given(st.lists(words, min_size=1, max_size=4), st.lists(words, min_size=1, max_size=4), st.floats(0.8, 1))
def test_the_rule_is_symmetric(one: list[str], other: list[str], cosine: float) -> None:
    left, right = " ".join(one), " ".join(other)
    assert can_be_synonyms(left, right, cosine, 0.8) is can_be_synonyms(right, left, cosine, 0.8)
    assert are_variants(left, left)
    numbers = [[word for word in sorted(phrase) if word in ("ii", "2")] for phrase in (one, other)]
    assert numbers[0] == numbers[1] or not are_variants(left, right)


def test_the_rule_agrees_with_labels_made_by_hand() -> None:
    found = shares(LABELLED)
    assert found["after, random"] >= 0.85
    assert found["after, weakest"] >= 0.6
    correct = set(LABELLED["correct"])
    accepted = {index for index, pair in enumerate(LABELLED["pairs"]) if are_variants(*pair)}
    assert len(accepted & correct) >= 0.85 * len(accepted)
    assert len(accepted & correct) >= 0.85 * len(correct)


CJK = ["北京", "北京市", "東京", "東京都", "水a", "水b"]


def documents():
    ring = [*NUMBERED, *PHRASES[:20], *HOSTILE, *CJK]
    triples = tuple((phrase, "is", ring[i - 1]) for i, phrase in enumerate(ring))
    return {"d": [("T", "text 1", triples)], "e": [("T", "text 2", triples[::2])]}


def edges(lines):
    return {(line["source"], line["target"]): line["weight"] for line in lines if line.get("type") == "synonym"}


@pytest.mark.slow
def test_a_store_of_an_earlier_release_loses_false_synonyms_as_it_is_opened(tmp_path, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr(SynonymRule, "VERSION", SynonymRule.VERSION - 1)
        earlier.setattr(store.change.synonym_change, "pair_rule", lambda rule, text: None)
        earlier.setattr(store.checkpoint.files, "FORMAT", 15)
        with open_store(tmp_path) as memory:
            memory.commit(complete(memory, documents(), []))
            assert memory.write_checkpoint()
            before = edges(map(json.loads, export_lines(memory.snapshot())))
            commit = memory.snapshot().commit
    expected = oracle.export(documents(), lambda *_: [])
    assert before.keys() - edges(expected).keys()
    with open_store(tmp_path) as memory:
        assert memory.opened_from.startswith("rebuilt")
        assert oracle.same(export_lines(memory.snapshot()), expected) is None
        assert edges(map(json.loads, export_lines(memory.snapshot_at(commit)))) == before
        assert verify(memory).problems == []
        found = measure_recall(memory.snapshot(), memory.rule, 1_000)
        assert (found.share, found.missing) == (1.0, 0)
        memory.write_checkpoint()
        commit = memory.snapshot().commit
    with open_store(tmp_path) as memory:
        assert memory.opened_from.startswith("checkpoint")
        assert memory.snapshot().commit == commit
        assert oracle.same(export_lines(memory.snapshot()), expected) is None


def test_without_variants_the_cosine_alone_decides(tmp_path):
    with open_store(tmp_path, SynonymRule(oracle.THRESHOLD, variants=False)) as memory:
        memory.commit(complete(memory, documents(), []))
        expected = oracle.export(documents(), lambda *_: [], by_texts=False)
        assert oracle.same(export_lines(memory.snapshot()), expected) is None
        assert edges(expected).keys() - edges(oracle.export(documents(), lambda *_: [])).keys()
