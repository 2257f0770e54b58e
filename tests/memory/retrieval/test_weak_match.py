"""A match is weak below the cosine that was measured for the encoder; of other encoders nothing is said."""

import re
from pathlib import Path

from memory.retrieval.weak_match import WEAK_BELOW, is_weak
from store.types import EncoderIdentity

DOCS = Path(__file__).parents[3] / "docs" / "explanation" / "retrieval.md"


def test_a_match_is_weak_below_the_measured_cosine_of_its_encoder() -> None:
    for name, below in WEAK_BELOW.items():
        encoder = EncoderIdentity(name, 384)
        assert (is_weak(encoder, below - 0.01), is_weak(encoder, below)) == (True, False)
        assert is_weak(encoder, None) is None
    assert is_weak(EncoderIdentity("somebody/else", 384), 0.0) is None


def test_the_docs_name_each_threshold_in_use() -> None:
    listed = re.findall(r"^\| `([^`]+/[^`]+)` \| (0\.\d\d) \|", DOCS.read_text("utf-8"), re.MULTILINE)
    assert {name: float(below) for name, below in listed} == WEAK_BELOW
