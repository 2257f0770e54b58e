"""A measurement fails if the work beside it fails."""

import pytest

from bench.support.growth.maintenance import Adding
from bench.support.measuring import repeated


def fail(*_: int) -> None:
    raise OSError("no space left")


def test_repeated_work_that_fails_fails_the_measurement() -> None:
    with pytest.raises(OSError, match="no space left"), repeated(lambda: None, fail):
        pass


def test_adding_that_fails_fails_the_measurement() -> None:
    with pytest.raises(OSError, match="no space left"), Adding(fail):
        pass
