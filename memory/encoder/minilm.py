"""all-MiniLM-L6-v2, the packaged encoder for English, in the library's own file layout."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from numpy.typing import NDArray
from safetensors import safe_open
from tokenizers import Tokenizer

from memory.encoder.bert import BertShape, bert_graph, looked_up
from memory.encoder.bert_encoder import BertEncoder, TextReader
from memory.encoder.unknown_text import Vocabulary
from store.types import EncoderIdentity


def load_minilm(weights: Path, identity: EncoderIdentity, batch_size: int, *, windows: bool) -> BertEncoder:
    """Returns the encoder: lower-cased WordPiece, at most 256 tokens. `weights`: from `packaged_model`, with the model's other
    files in the same folder."""
    folder = weights.parent
    config = json.loads((folder / "config.json").read_bytes())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    pieces = tokenizer.get_vocab()
    shape = BertShape(
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        hidden=config["hidden_size"],
        norm_epsilon=config["layer_norm_eps"],
    )
    with safe_open(str(weights), framework="numpy") as file:
        graph = bert_graph(_PublishedWeights(file), shape)
    reader = TextReader(
        tokenizer=tokenizer,
        vocabulary=Vocabulary(pieces, "[UNK]", [pieces["[CLS]"], pieces["[SEP]"]]),
        max_tokens=json.loads((folder / "sentence_bert_config.json").read_bytes())["max_seq_length"],
        one_language=True,
        windows=windows,
    )
    return BertEncoder(identity, graph, reader, batch_size)


class _PublishedWeights:
    """BERT weights from a safetensors file (`bert.BertWeights`)."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def tensor(self, name: str) -> NDArray[np.float32]:
        tensor: NDArray[np.float32] = self._file.get_tensor(name)
        return tensor

    def word_vectors(self, tokens: openvino.Node) -> openvino.Node:
        return looked_up(self.tensor("embeddings.word_embeddings.weight"), tokens)
