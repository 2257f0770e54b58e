"""Histories with purges, starts and faults: memory, tables and documents agree at the end of each.

`python -m bench histories --count N --seed S` runs any number of them.
"""

import pytest

from store.index.live_index import LiveIndex
from tests.store import histories

WORLDS = 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_histories_with_purges_restarts_and_faults_show_no_problem(seed):
    steps = histories.script(seed, WORLDS)
    problem = histories.failure(steps)
    assert problem is None, f"{problem}\n" + "\n".join(map(str, histories.shortest(steps)))


def test_a_script_is_a_function_of_its_seed():
    assert histories.script(5, 20) == histories.script(5, 20)
    assert histories.script(5, 20) != histories.script(6, 20)


@pytest.mark.slow
def test_history_test_finds_purged_content_and_shortens_its_script(monkeypatch):
    forget = LiveIndex.forget

    def forgets_half(index, contents, rows):
        readers = dict(index.extraction_states)
        forget(index, contents, rows)
        index.extraction_states.update(readers)

    monkeypatch.setattr(LiveIndex, "forget", forgets_half)
    steps = histories.script(1, worlds=4, steps=10)
    assert "the extraction of row" in (histories.failure(steps) or "")
    short = histories.shortest(steps, most_runs=25)
    assert "the extraction of row" in (histories.failure(short) or "")
    assert len(short) < len(steps)
