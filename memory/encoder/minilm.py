"""The packaged MiniLM on the CPU: the `sentence-transformers` backend's default.

Text to vector as the library does it (lower-cased WordPiece, at most 256 tokens, mean pooling, L2 norm), with `bert.Bert`
in place of the library's forward pass and without importing the library, which costs seconds and 200 MB.
"""

import json
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memory.encoder import packaged_model
from memory.encoder.bert import Bert, BertShape, has_bfloat16
from memory.encoder.priority import QueryPriority, lower_thread_priority
from memory.encoder.text_preparation import tokenizable
from memory.encoder.unknown_text import Vocabulary
from memory.types import Matrix
from store.types import EncoderIdentity

MICRO_BATCH_TOKENS = 512
"""One thread's unit of work, some 40 ms: larger ones are not faster."""
MAX_TOKENIZED_CHARS = 8192
"""Of a text, before tokenising; 256 tokens of prose are some 1,200 characters."""
CACHED_MINILM_QUERIES = 64

_WINDOW_TEXTS = 1024
"""Texts that are tokenised and sorted by length together."""

Micro = tuple[list[int], list[torch.Tensor]]
"""Rows of the window, and their token ids grouped by length, in the same order."""


class MiniLMEncoder:
    """`memory.types.Encoder` with the packaged model. `batch_size` limits the texts of a micro-batch.

    A text's vector comes from its first 256 tokens, and of its first `MAX_TOKENIZED_CHARS` characters.
    Indexing runs on one low-priority thread a processor, a query on the thread that asks: matrix products on one core each
    need no barriers, so a busy machine slows them in proportion only.

    A text of which the tokeniser knows nothing (`memory.encoder.unknown_text`) has the zero vector.

    Phrases and queries are computed in float32: their vectors decide synonym edges, which are to be the same on every
    machine. Passages and triples are computed in bfloat16 where the processor has it.
    """

    def __init__(self, folder: Path, batch_size: int) -> None:
        """Loads the model from the library's own file layout; some 0.3 s, may run in any thread."""
        config = json.loads((folder / "config.json").read_bytes())
        limit = json.loads((folder / "sentence_bert_config.json").read_bytes())["max_seq_length"]
        # A process-wide setting, as torch has no other; what is gained is described above.
        torch.set_num_threads(1)
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
        weights = folder / "model.safetensors"
        self._bert = Bert(weights, shape)
        self._rough = (self._bert.in_bfloat16(weights) if has_bfloat16() else None) or self._bert
        self._batch_size = batch_size
        self._priority = QueryPriority()
        self._workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._workers, "encoder", lower_thread_priority)
        self._remembered = lru_cache(CACHED_MINILM_QUERIES)(self._encode_query)
        self.identity = EncoderIdentity(packaged_model.PACKAGED_MODEL, shape.hidden)

    def encode(self, texts: Sequence[str]) -> Matrix:
        return self._encode(texts, self._bert)

    def encode_roughly(self, texts: Sequence[str]) -> Matrix:
        return self._encode(texts, self._rough)

    def _encode(self, texts: Sequence[str], bert: Bert) -> Matrix:
        vectors = np.zeros((len(texts), self.identity.dim), dtype=np.float32)
        under_way: deque[tuple[list[int], Future[Matrix]]] = deque()

        def take_oldest() -> None:
            rows, result = under_way.popleft()
            vectors[rows] = result.result()

        for start in range(0, len(texts), _WINDOW_TEXTS):
            for rows, groups in self._micro_batches(texts[start : start + _WINDOW_TEXTS]):
                # Few at a time, so that another caller's texts come in between.
                if len(under_way) > self._workers:
                    take_oldest()
                under_way.append(([start + row for row in rows], self._pool.submit(self._run, bert, groups)))
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
            with self._priority.query_under_way(), torch.inference_mode():
                vector: NDArray[np.float32] = self._bert([torch.tensor([tokens])]).numpy()[0]
        else:
            vector = np.zeros(self.identity.dim, np.float32)
        vector.setflags(write=False)
        return vector

    def _run(self, bert: Bert, groups: list[torch.Tensor]) -> Matrix:
        with torch.inference_mode():
            return bert(groups, between=self._priority.yield_to_queries).numpy()

    def _micro_batches(self, texts: Sequence[str]) -> Iterator[Micro]:
        """The known texts, shortest first, in micro-batches of about `MICRO_BATCH_TOKENS` and at most `batch_size` texts."""
        ids = [self._tokenizer.encode(tokenizable(text, MAX_TOKENIZED_CHARS)).ids for text in texts]
        rows: list[int] = []
        tokens = 0
        known = [row for row in range(len(ids)) if self._vocabulary.knows(ids[row])]
        for row in sorted(known, key=lambda row: len(ids[row])):
            if rows and (tokens + len(ids[row]) > MICRO_BATCH_TOKENS or len(rows) >= self._batch_size):
                yield rows, _by_length([ids[row] for row in rows])
                rows, tokens = [], 0
            rows.append(row)
            tokens += len(ids[row])
        if rows:
            yield rows, _by_length([ids[row] for row in rows])


def _by_length(sequences: list[list[int]]) -> list[torch.Tensor]:
    """Sorted sequences as one int64 tensor (count, length) for each length."""
    groups: dict[int, list[list[int]]] = {}
    for sequence in sequences:
        groups.setdefault(len(sequence), []).append(sequence)
    return [torch.tensor(group) for group in groups.values()]
