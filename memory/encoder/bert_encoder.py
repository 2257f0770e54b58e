"""The packaged models on the CPU. OpenVINO computes the forward pass (`bert.Bert`), so torch is not needed.

The steps are the same as in the authors' code: tokens, forward pass, mean over the tokens, L2 normalisation.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import openvino
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memory.encoder.bert import Bert, Tokens, has_bfloat16
from memory.encoder.priority import QueryPriority, lower_thread_priority
from memory.encoder.text_preparation import (
    MAX_INDEXED_CHARS,
    MAX_QUERY_CHARS,
    pooled,
    rows_of_equal_length,
    text_windows,
    tokenizable,
)
from memory.encoder.unknown_text import Vocabulary
from memory.types import Encoder, Matrix
from store.types import EncoderIdentity

CALL_TOKENS = 256
"""Maximum number of tokens in one call of the model; a longer sequence has a call of its own. Larger calls are not faster, and
a query waits for the end of the running call."""
CACHED_QUERIES = 64

_TEXTS_AT_ONCE = 1024
"""Number of texts tokenised and sorted by length together."""

Group = tuple[list[int], Tokens]
"""(row of each window, tokens of the windows), for windows of one length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReader:
    """The tokeniser of a model and its settings."""

    tokenizer: Tokenizer
    """Adds the special tokens at the beginning and end of a sequence. It neither pads nor truncates."""
    vocabulary: Vocabulary
    max_tokens: int
    """Maximum number of tokens of a sequence."""
    query_prefix: str = ""
    passage_prefix: str = ""
    one_language: bool
    """Whether the model knows only one language, in which most words are single tokens."""
    windows: bool = True
    """Whether a text longer than `max_tokens` is encoded in windows. If not, its end is cut off."""
    centre: NDArray[np.float32] | None = None
    """Subtracted from each vector before a second normalisation, for a model whose vectors all point in similar directions."""
    temperature_factor: float = 1.0
    prepare: Callable[[str], str] = str


class BertEncoder(Encoder):
    """`batch_size` is the maximum number of sequences in one call of the model.

    A text longer than the model's maximum is encoded in windows (`text_windows`).

    Indexing runs on one low-priority thread per processor, queries on their own threads. Each call uses one thread, so other
    load on the machine slows calls only in proportion.

    A window without known tokens (`memory.encoder.unknown_text`) is ignored. A text without other windows has the zero vector.

    Phrases and queries are computed in float32, because their vectors decide synonym edges, which must be equal on all
    machines. Passages and triples are computed in bfloat16 if the processor supports it.
    """

    def __init__(self, identity: EncoderIdentity, graph: openvino.Model, reader: TextReader, batch_size: int) -> None:
        """Compiles `graph`, made by `bert_graph`. Takes about 0.5 s; may run in any thread."""
        self.identity = identity
        self.temperature_factor = reader.temperature_factor
        self._reader = reader
        self._batch_size = batch_size
        self._priority = QueryPriority()
        self._workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._workers, "encoder", lower_thread_priority)
        self._query = Bert(graph, self._workers)
        # A low-priority thread compiles the model, because the engine's threads inherit the priority.
        self._exact = self._pool.submit(Bert, graph, self._workers).result()
        bfloat16 = partial(Bert, graph, self._workers, bfloat16=True)
        self._rough = self._pool.submit(bfloat16).result() if has_bfloat16() else self._exact
        self._query_pool = ThreadPoolExecutor(self._workers, "query encoder")
        self._begun = lru_cache(CACHED_QUERIES)(self._begin)
        self._known = lru_cache(CACHED_QUERIES)(self._whole_words)

    def encode(self, texts: Sequence[str]) -> Matrix:
        return self._encode(texts, self._exact)

    def encode_low_precision(self, texts: Sequence[str]) -> Matrix:
        return self._encode(texts, self._rough)

    def begin_query(self, text: str) -> None:
        self._begun(tokenizable(text, MAX_QUERY_CHARS))

    def encode_query(self, text: str) -> NDArray[np.float32]:
        try:
            return self._begun(tokenizable(text, MAX_QUERY_CHARS)).result()
        except Exception:
            self._begun.cache_clear()  # so that the next query tries again
            raise

    def known_words(self, text: str) -> float:
        """Returns the share of the text's words that the model knows. It is 1 for multilingual models, which know words in
        pieces."""
        return self._known(tokenizable(text, MAX_QUERY_CHARS)) if self._reader.one_language else 1.0

    def _whole_words(self, text: str) -> float:
        encoded = self._reader.tokenizer.encode(self._reader.prepare(text))
        return self._reader.vocabulary.whole_words(encoded.ids, encoded.word_ids)

    def _encode(self, texts: Sequence[str], bert: Bert) -> Matrix:
        vectors = np.zeros((len(texts), self.identity.dim), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = [tokenizable(text, MAX_INDEXED_CHARS) for text in texts[start : start + _TEXTS_AT_ONCE]]
            windows = [list(self._windows(text, self._reader.passage_prefix)) for text in part]
            found = self._run_all(bert, [tokens for each in windows for tokens in each])
            vectors[start : start + len(part)] = self._vectors_of_texts(found, windows)
        return vectors

    def _begin(self, text: str) -> Future[NDArray[np.float32]]:
        return self._query_pool.submit(self._encode_query, text)

    def _encode_query(self, text: str) -> NDArray[np.float32]:
        windows = list(self._windows(text, self._reader.query_prefix))
        with self._priority.query_under_way():
            found = [self._query(np.array([tokens])) for tokens in windows]
        empty = np.zeros((0, self.identity.dim), np.float32)
        vector: NDArray[np.float32] = self._vectors_of_texts(np.concatenate([empty, *found]), [windows])[0]
        vector.setflags(write=False)
        return vector

    def _windows(self, text: str, prefix: str) -> Iterator[list[int]]:
        """Yields the tokens of each window that has known tokens."""
        reader = self._reader
        text = reader.prepare(text)
        encoded = reader.tokenizer.encode(prefix + text)
        if len(encoded.ids) <= reader.max_tokens:
            sequences = [encoded.ids]
        elif not reader.windows:
            sequences = [[*encoded.ids[: reader.max_tokens - 1], encoded.ids[-1]]]
        else:
            sequences = self._cut(text, prefix)
        return filter(reader.vocabulary.knows, sequences)

    def _cut(self, text: str, prefix: str) -> list[list[int]]:
        reader = self._reader
        room = reader.max_tokens - len(reader.tokenizer.encode(prefix).ids)
        spans = reader.tokenizer.encode(text, add_special_tokens=False).offsets
        sequences = [reader.tokenizer.encode(prefix + window).ids for window in text_windows(text, spans, room)]
        # A window that ends inside a word may have one or two more tokens when it is tokenised alone.
        return [[*ids[: reader.max_tokens - 1], ids[-1]] if len(ids) > reader.max_tokens else ids for ids in sequences]

    def _vectors_of_texts(self, vectors: Matrix, windows: Sequence[Sequence[Sequence[int]]]) -> Matrix:
        of_texts = pooled(vectors, [[*map(len, each)] for each in windows])
        if self._reader.centre is not None:
            known = of_texts.any(axis=1)
            of_texts[known] -= self._reader.centre
            of_texts[known] /= np.linalg.norm(of_texts[known], axis=1, keepdims=True)
        return of_texts

    def _run_all(self, bert: Bert, sequences: Sequence[list[int]]) -> Matrix:
        vectors = np.empty((len(sequences), self.identity.dim), dtype=np.float32)
        under_way: deque[tuple[list[int], Future[Matrix]]] = deque()

        def take_oldest() -> None:
            rows, result = under_way.popleft()
            vectors[rows] = result.result()

        for rows, tokens in self._groups(sequences):
            # Only a few calls are queued at a time, so that calls for other texts can run in between.
            if len(under_way) > self._workers:
                take_oldest()
            under_way.append((rows, self._pool.submit(self._run, bert, tokens)))
        while under_way:
            take_oldest()
        return vectors

    def _run(self, bert: Bert, tokens: Tokens) -> Matrix:
        self._priority.yield_to_queries()
        return bert(tokens)

    def _groups(self, sequences: Sequence[list[int]]) -> Iterator[Group]:
        """Yields groups of sequences of equal length, shortest first. A group has one sequence, or at most `CALL_TOKENS` tokens
        and `batch_size` sequences."""

        def max_rows(length: int) -> int:
            return max(1, min(self._batch_size, CALL_TOKENS // length))

        for rows in rows_of_equal_length([*map(len, sequences)], max_rows):
            yield rows, np.array([sequences[row] for row in rows])
