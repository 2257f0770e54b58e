"""A match is weak below the cosine that is known for the encoder; of other encoders nothing is said."""

import re
from pathlib import Path

from memory.encoder.packaged_model import PACKAGED_MODELS
from memory.retrieval.retrieve import is_weak

DOCS = Path(__file__).parents[3] / "docs" / "explanation" / "retrieval.md"


def test_a_match_is_weak_below_the_encoders_cosine() -> None:
    assert (is_weak(0.43, 0.42), is_weak(0.43, 0.43), is_weak(0.43, None)) == (True, False, None)
    assert is_weak(None, 0.0) is None


def test_the_docs_name_each_threshold_in_use() -> None:
    listed = re.findall(r"^\| `([^`]+)` \| (0\.\d\d) \|", DOCS.read_text("utf-8"), re.MULTILINE)
    assert {name: float(below) for name, below in listed} == {
        model.names[0]: model.calibration.weak_below for model in PACKAGED_MODELS
    }
