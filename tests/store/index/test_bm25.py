"""BM25's postings grow while they are read."""

import sys
import threading
from random import Random

import numpy as np
import pytest

from store.index.bm25 import Postings

PASSAGES = 20_000


@pytest.fixture
def busy_interpreter():
    """Threads change turns as often as the interpreter can: what a month of commits beside queries comes upon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_an_accent_is_found_in_either_of_its_forms():
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


def test_the_best_alone_are_those_of_all_with_the_same_scores() -> None:
    random = Random(5)
    words = [f"w{at}" for at in range(40)]
    postings, count = Postings(), 300
    for row in range(count):
        # Words as common as 1 / their place: some in nearly every passage, some in one.
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
