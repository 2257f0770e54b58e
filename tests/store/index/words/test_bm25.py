"""BM25 equals its formula, for the best passages alone and for words in several languages; postings grow while they are
read."""

import sys
import threading
from math import log
from random import Random

import numpy as np
import pytest

from store.index.words.postings import Postings
from store.text.terms import passage_terms, query_terms

PASSAGES = 20_000


@pytest.fixture
def busy_interpreter():
    """Makes threads switch as often as possible, like a month of commits and queries."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_accents_match_in_composed_and_decomposed_form():
    postings = Postings()
    length = postings.extend(0, "Das Cafe\u0301 in Zu\u0308rich") + postings.extend(1, "Das Café in Zürich")
    for query in ("café", "cafe\u0301", "Zürich", "Zu\u0308rich"):
        scores = postings.scores(query, np.ones(2, np.bool_), length)
        assert scores[0] == scores[1] > 0, query


@pytest.mark.usefixtures("busy_interpreter")
@pytest.mark.slow
def test_passages_are_taken_in_while_others_are_being_scored():
    postings = Postings()
    lengths = [postings.extend(0, "harbour")]
    done = threading.Event()
    read: list[int] = []
    faults: list[BaseException] = []

    def ask():
        try:
            while not done.is_set():
                n = len(lengths)
                scores = postings.scores("harbour boat7", np.ones(n, np.bool_), 3 * n)
                assert (scores > 0).all()
                read.append(n)
        except BaseException as fault:
            faults.append(fault)

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    try:
        for row in range(1, PASSAGES):
            lengths.append(postings.extend(row, f"harbour harbour boat{row % 50}"))  # noqa: PERF401 - each is to be seen
    finally:
        done.set()
        for asker in askers:
            asker.join()
    assert faults == []
    assert len(set(read)) > 10, "it was hardly ever read meanwhile"
    saved = postings.to_arrays(PASSAGES)
    assert saved.starts[-1] == len(saved.rows) == 2 * PASSAGES - 1
    place = saved.terms.index("harbour")
    assert saved.rows[saved.starts[place] : saved.starts[place + 1]].tolist() == list(range(PASSAGES))


def test_top_scores_equal_those_of_a_full_scoring() -> None:
    random = Random(5)
    words = [f"w{at}" for at in range(40)]
    postings, count = Postings(), 300
    for row in range(count):
        # Word frequencies are proportional to 1 / rank: some words are in nearly every passage, some in one.
        postings.extend(
            row, " ".join(random.choices(words, [1 / (at + 1) for at in range(40)], k=random.randint(5, 30)))
        )
    alive = np.array([random.random() < 0.9 for _ in range(count)])
    for best in (1, 5, 60):
        for query in ("w0 w1 w39", "w30 w0 w2", "w0", "w38 w37 w36 w1", "w5 w5 w17", "nothing"):
            whole, found = (postings.compare(query, alive, alive, best=each) for each in (None, best))
            assert found.rarities == whole.rarities
            least = np.sort(whole.scores)[-min(best, len(whole.rows)) :].min(initial=np.inf)
            chosen = whole.scores >= least
            assert found.rows.tolist() == whole.rows[chosen].tolist()
            assert found.scores.tolist() == whole.scores[chosen].tolist()
            assert found.coverage.tolist() == whole.coverage[chosen].tolist()


TEXTS = (
    "The old harbour of the town was rebuilt after the great storm, and the ferry came back to it in spring.",
    "Der alte Hafen der Stadt wurde nach dem großen Sturm wieder aufgebaut, und die Fähre kam im Frühling zurück.",
    "Le vieux port de la ville a été reconstruit après la grande tempête, et le bac est revenu au printemps.",
    "Müller hat den Hafen oublié; der Kapitän Mueller schrieb das in das Buch der Stadt und des Hafens.",
    "On a oublié le port oublie de la ville, et le capitaine Müller est allé à la fenêtre du bac.",
    "港の町の船は春に戻ってきた。古い港は嵐のあとで建て直された。",
)


def test_scores_of_words_of_several_languages_equal_the_bm25_formula() -> None:
    """Compared with the formula in loops: a word counts as often as its most frequent term, in any language."""
    postings, random = Postings(), Random(11)
    texts = [" ".join(random.sample(TEXTS, 1) * random.randint(1, 3)) for _ in range(60)]
    lengths = [postings.extend(row, text) for row, text in enumerate(texts)]
    assert len(postings.languages) >= 3
    terms = [passage_terms(text)[0] for text in texts]
    for n in (60, 41):
        alive = np.array([random.random() < 0.8 for _ in range(n)])
        for query in (
            "Müller oublié harbour",
            "Hafen port 港 ferry Fähre",
            "oublie Stadt ville town",
            "storm storm Sturm",
        ):
            living = [row for row in range(n) if alive[row]]
            mean = sum(lengths[row] for row in living) / len(living)
            expected = dict.fromkeys(living, 0.0)
            for word, repeats in query_terms(query, postings.languages).items():
                counts = {row: max(terms[row][term] for term in word) for row in living}
                holding = sum(count > 0 for count in counts.values())
                idf = log(1 + (len(living) - holding + 0.5) / (holding + 0.5))
                for row, count in counts.items():
                    expected[row] += repeats * idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[row] / mean))
            held = {row: score for row, score in expected.items() if score > 0}
            found = postings.compare(query, alive, alive)
            assert found.rows.tolist() == sorted(held)
            assert found.scores.tolist() == pytest.approx([held[row] for row in sorted(held)])
            best = postings.compare(query, alive, alive, best=3)
            assert best.scores.tolist() == found.scores[np.searchsorted(found.rows, best.rows)].tolist()
            scores = postings.scores(query, alive, sum(lengths[row] for row in living))
            assert scores[found.rows] == pytest.approx(found.scores)
