"""A process killed at any moment loses no acknowledged commit, and leaves no commit half done."""

import pytest

from tests.crash.crashing import Crashes

pytestmark = pytest.mark.process

CRASHES = 8


def test_a_kill_at_any_moment_loses_nothing_and_repeats_nothing(tmp_path):
    crashes = Crashes(tmp_path / "store", seed=5)
    for _ in range(CRASHES):
        crashes.crash(longest_s=0.8)
    assert crashes.done > CRASHES
