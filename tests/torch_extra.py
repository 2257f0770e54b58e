"""Tests of the extra `torch`, which `make test-torch` installs; without it they are skipped and say why."""

from importlib.util import find_spec

import pytest

INSTALLED = find_spec("sentence_transformers") is not None

needs_torch = [
    pytest.mark.torch,
    pytest.mark.process,  # torch for GPUs runs ldconfig when it is imported
    pytest.mark.skipif(not INSTALLED, reason="the extra torch is not installed: make test-torch"),
]
