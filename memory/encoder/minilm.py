"""The packaged MiniLM on the CPU: the `sentence-transformers` backend's default.

It turns a text into a vector as the library does (lower-cased WordPiece, at most 256 tokens, mean pooling, L2 norm). OpenVINO
computes the forward pass (`bert.Bert`), so neither the library nor torch is needed.
"""

import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memory.encoder import packaged_model
from memory.encoder.bert import Bert, BertShape, Tokens, bert_graph, has_bfloat16
from memory.encoder.priority import QueryPriority, lower_thread_priority
from memory.encoder.text_preparation import tokenizable
from memory.encoder.unknown_text import Vocabulary
from memory.types import Matrix
from store.types import EncoderIdentity

CALL_TOKENS = 256
"""Tokens that go through the model in one call, at most: more are not faster, and a query waits for a call's end."""
MAX_TOKENIZED_CHARS = 8192
"""Of a text, before tokenising; 256 tokens of prose are some 1,200 characters."""
CACHED_MINILM_QUERIES = 64

_WINDOW_TEXTS = 1024
"""Texts that are tokenised and sorted by length together."""

Group = tuple[list[int], Tokens]
"""Rows of the window whose texts have one length, and their tokens."""


class MiniLMEncoder:
    """`memory.types.Encoder` with the packaged model. `batch_size` limits the texts of one call of the model.

    A text's vector comes from its first 256 tokens, and of its first `MAX_TOKENIZED_CHARS` characters.
    Indexing runs on one low-priority thread per processor, queries on threads of their own: one thread computes one call, so
    a busy machine slows calls in proportion only.

    A text of which the tokeniser knows nothing (`memory.encoder.unknown_text`) has the zero vector.

    Phrases and queries are computed in float32: their vectors decide synonym edges, which are to be the same on every
    machine. Passages and triples are computed in bfloat16 if the processor supports it.
    """

    def __init__(self, folder: Path, batch_size: int) -> None:
        """Loads the model from the library's own file layout; some 0.5 s, may run in any thread."""
        config = json.loads((folder / "config.json").read_bytes())
        limit = json.loads((folder / "sentence_bert_config.json").read_bytes())["max_seq_length"]
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(limit)
        pieces = self._tokenizer.get_vocab()
        self._vocabulary = Vocabulary(pieces, "[UNK]", [pieces["[CLS]"], pieces["[SEP]"]])
        shape = BertShape(
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            hidden=config["hidden_size"],
            norm_epsilon=config["layer_norm_eps"],
        )
        graph = bert_graph(folder / "model.safetensors", shape)
        self._batch_size = batch_size
        self._priority = QueryPriority()
        self._workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._workers, "encoder", lower_thread_priority)
        self._query = Bert(graph, self._workers)
        # Compiled by a low-priority thread: the engine's threads inherit its priority.
        self._exact = self._pool.submit(Bert, graph, self._workers).result()
        bfloat16 = partial(Bert, graph, self._workers, bfloat16=True)
        self._rough = self._pool.submit(bfloat16).result() if has_bfloat16() else self._exact
        self._remembered = lru_cache(CACHED_MINILM_QUERIES)(self._encode_query)
        self.identity = EncoderIdentity(packaged_model.PACKAGED_MODEL, shape.hidden)

    def encode(self, texts: Sequence[str]) -> Matrix:
        return self._encode(texts, self._exact)

    def encode_roughly(self, texts: Sequence[str]) -> Matrix:
        return self._encode(texts, self._rough)

    def _encode(self, texts: Sequence[str], bert: Bert) -> Matrix:
        vectors = np.zeros((len(texts), self.identity.dim), dtype=np.float32)
        under_way: deque[tuple[list[int], Future[Matrix]]] = deque()

        def take_oldest() -> None:
            rows, result = under_way.popleft()
            vectors[rows] = result.result()

        for start in range(0, len(texts), _WINDOW_TEXTS):
            for rows, tokens in self._groups(texts[start : start + _WINDOW_TEXTS]):
                # Few at a time, so that another caller's texts come in between.
                if len(under_way) > self._workers:
                    take_oldest()
                under_way.append(([start + row for row in rows], self._pool.submit(self._run, bert, tokens)))
        while under_way:
            take_oldest()
        return vectors

    def encode_query(self, text: str) -> NDArray[np.float32]:
        return self._remembered(tokenizable(text, MAX_TOKENIZED_CHARS))

    def known_words(self, text: str) -> float:
        encoded = self._tokenizer.encode(tokenizable(text, MAX_TOKENIZED_CHARS))
        return self._vocabulary.whole_words(encoded.ids, encoded.word_ids)

    def _encode_query(self, text: str) -> NDArray[np.float32]:
        tokens = self._tokenizer.encode(text).ids
        if self._vocabulary.knows(tokens):
            with self._priority.query_under_way():
                vector: NDArray[np.float32] = self._query(np.array([tokens]))[0]
        else:
            vector = np.zeros(self.identity.dim, np.float32)
        vector.setflags(write=False)
        return vector

    def _run(self, bert: Bert, tokens: Tokens) -> Matrix:
        self._priority.yield_to_queries()
        return bert(tokens)

    def _groups(self, texts: Sequence[str]) -> Iterator[Group]:
        """The known texts by length, shortest first: up to `CALL_TOKENS` and `batch_size` texts together, at least one."""
        by_length: dict[int, list[tuple[int, list[int]]]] = {}
        for row, text in enumerate(texts):
            ids = self._tokenizer.encode(tokenizable(text, MAX_TOKENIZED_CHARS)).ids
            if self._vocabulary.knows(ids):
                by_length.setdefault(len(ids), []).append((row, ids))
        for length, known in sorted(by_length.items()):
            size = max(1, min(self._batch_size, CALL_TOKENS // length))
            for start in range(0, len(known), size):
                rows, ids_of_rows = zip(*known[start : start + size], strict=True)
                yield list(rows), np.array(ids_of_rows)
