"""Titles that a query spells out are found whatever joins their words, and lead on to what their passages tell."""

from pathlib import Path

import pytest

from memory.encoder import make_encoder
from memory.retrieval.linking.query_titles import named_titles, share_of_query, title_phrases
from memory.retrieval.query_context import QueryContext
from memory.retrieval.retrieve import retrieve
from memory.retrieval.settings import RetrievalSettings
from store.store import Store
from tests.memory.retrieval.test_reference import commit

ENCODER = make_encoder("hash", "64", 64, "cpu")
FILMS = {
    "Love, Honor and Oh-Baby!": [("love honor and oh baby", "directed by", "charles lamont")],
    "45 Fathers": [("45 fathers", "directed by", "james tinling")],
    "Illusions (1982 film)": [("illusions", "directed by", "julie dash")],
    "Illusions (1930 film)": [("illusions", "directed by", "nobody known")],
    "The Straw Hat": [("the straw hat", "music by", "isaac schwartz")],
    "Hat": [("hat", "is", "clothing")],
    "Isaac Schwartz": [("isaac schwartz", "born in", "romny")],
    "Manual › Chapter 3 › Keyboard layout": [("keyboard layout", "set by", "setxkbmap")],
    "粘滞位": [("粘滞位", "限制", "删除")],
}


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory):
    with Store(tmp_path_factory.mktemp("films") / "store", ENCODER.identity) as memory:
        commit(memory, {f"file:///{title}": (title, f"{title}: {said}", said) for title, said in FILMS.items()})
        yield memory


def named(memory: Store, query: str) -> dict[str, set[str]]:
    snapshot = memory.snapshot()
    found = named_titles(QueryContext(snapshot, ENCODER, query, RetrievalSettings()))
    return {title.phrase: {snapshot.passage(row).title for row in title.passages} for title in found}


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("Which is older, Love, Honor And Oh-Baby! or 45 Fathers?", {"Love, Honor and Oh-Baby!", "45 Fathers"}),
        ("Who directed Illusions (1982 Film)?", {"Illusions (1982 film)"}),
        ("Who directed Illusions?", {"Illusions (1982 film)", "Illusions (1930 film)"}),
        ("Who wrote the music of The Straw Hat?", {"The Straw Hat"}),
        ("who wrote the music of the straw hat", {"The Straw Hat"}),
        ("who wears a hat", set()),
        ("Who wears a hat of Isaac Schwartz's?", {"Isaac Schwartz"}),
        ("What is the Keyboard Layout?", {"Manual › Chapter 3 › Keyboard layout"}),
        ("目录上的粘滞位有什么作用？", {"粘滞位"}),
        ("", set()),
    ],
)
def test_titles_named_in_a_query_are_found(films: Store, query: str, titles: set[str]) -> None:
    assert set().union(*named(films, query).values()) == titles


def test_title_phrases_are_the_last_heading_with_and_without_parentheses() -> None:
    assert title_phrases("Manual › Signals (POSIX)") == ("signals posix", "signals")
    assert title_phrases("Signals") == ("signals",)
    assert title_phrases("?!") == ()


def test_title_weight_is_the_share_of_the_query_that_titles_cover(films: Store) -> None:
    def share(query: str) -> float:
        context = QueryContext(films.snapshot(), ENCODER, query, RetrievalSettings())
        return share_of_query(context, named_titles(context))

    assert share("The Straw Hat") == pytest.approx(1.0)
    assert 0.3 < share("The Straw Hat, composer, birthplace, year") < 0.9
    assert share("who wears a hat") == 0.0


def test_walk_also_starts_one_hop_from_the_named_title(films: Store, tmp_path: Path) -> None:
    """The composer's passage shares no word with the question; what the film's states leads there."""
    query, settings = "Who wrote the music of The Straw Hat?", RetrievalSettings
    there = retrieve(films.snapshot(), ENCODER, query, "fused", 2, settings(), explained=True)
    assert [hit.title for hit in there.hits] == ["The Straw Hat", "Isaac Schwartz"]
    without = retrieve(films.snapshot(), ENCODER, query, "fused", 2, settings(hop_share=0.0), explained=True)
    shares = {hit.title: each.own_share for hit, each in zip(without.hits, without.explanations, strict=True)}
    hop = there.explanations[1].own_share
    assert hop is not None
    assert hop > (shares.get("Isaac Schwartz") or 0.0)
