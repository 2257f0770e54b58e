"""BM25's postings grow while they are read."""

import sys
import threading

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
