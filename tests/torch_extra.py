"""Tests of the extra `torch`, which `make test-torch` installs and requires; elsewhere they are skipped and say why."""

import os
from importlib.util import find_spec

import pytest

INSTALLED = find_spec("sentence_transformers") is not None
REQUIRED = os.environ.get("HIPPOD_REQUIRE_TORCH") == "1"
"""Set by `make test-torch`: a missing extra is then a failure."""

needs_torch = [
    pytest.mark.torch,
    pytest.mark.process,  # torch for GPUs runs ldconfig when it is imported
    pytest.mark.skipif(not INSTALLED and not REQUIRED, reason="the extra torch is not installed: make test-torch"),
]
