import pytest

from memory.encoder import make_encoder
from memory.encoder.bert_encoder import BertEncoder


@pytest.fixture(scope="session")
def minilm() -> BertEncoder:
    made = make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 64, "cpu")
    assert isinstance(made, BertEncoder)
    return made
