"""`make test-…` runs pytest with `--no-skips`: what was skipped, for want of a tool, is no success."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_target_of_one_kind_of_tests_allows_no_skips() -> None:
    recipes = re.findall(r"(?m)^(test-[a-z]+):.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text())
    assert {name for name, _ in recipes} >= {"test-torch", "test-broker", "test-servers", "test-service", "test-image"}
    for name, recipe in recipes:
        # run_on_tansu passes the option itself; run_on_ray is no test of pytest's.
        assert "$(COMPLETE)" in recipe or "run_on_" in recipe, name
    assert '"--no-skips"' in (ROOT / "tests/consumers/kafka/run_on_tansu.py").read_text()
