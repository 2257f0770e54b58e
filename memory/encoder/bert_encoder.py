"""The packaged models on the CPU: OpenVINO computes the forward pass (`bert.Bert`), so torch is not needed.

A text becomes a vector as its model's authors make it: tokens, forward pass, mean over the tokens, L2 norm.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memory.encoder.bert import Bert, Tokens, has_bfloat16
from memory.encoder.priority import QueryPriority, lower_thread_priority
from memory.encoder.text_preparation import MAX_INDEXED_CHARS, MAX_QUERY_CHARS, tokenizable
from memory.encoder.text_windows import pooled, text_windows
from memory.encoder.unknown_text import Vocabulary
from memory.types import Matrix
from store.types import EncoderIdentity

CALL_TOKENS = 256
"""Tokens that go through the model in one call, at most, where a sequence has fewer: more are not faster, and a query waits for
a call's end."""
CACHED_QUERIES = 64

_TEXTS_AT_ONCE = 1024
"""Texts that are tokenised and sorted by length together."""

Group = tuple[list[int], Tokens]
"""Numbers of windows that have one length, and their tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReader:
    """How a model reads texts."""

    tokenizer: Tokenizer
    """It adds the tokens that begin and end a sequence. It neither pads nor cuts."""
    vocabulary: Vocabulary
    max_tokens: int
    """Of one sequence."""
    query_prefix: str = ""
    passage_prefix: str = ""
    one_language: bool
    """Whether the model was made for one language, of which it has most words whole."""
    windows: bool = True
    """Whether a text that is longer than `max_tokens` is encoded in windows. If not, only its beginning is."""
    centre: NDArray[np.float32] | None = None
    """Subtracted from each vector, whose length becomes one again: for a model whose vectors all point one way."""
    prepare: Callable[[str], str] = str
    """What the tokeniser expects to be done to a text before."""


class BertEncoder:
    """`memory.types.Encoder` with a packaged model. `batch_size` limits the sequences of one call of the model.

    A text that is longer than the model reads is encoded in windows (`text_windows`).

    Indexing runs on one low-priority thread per processor, queries on threads of their own: one thread computes one call, so
    a busy machine slows calls in proportion only.

    A window of which the tokeniser knows nothing (`memory.encoder.unknown_text`) does not count. A text that has no other has
    the zero vector.

    Phrases and queries are computed in float32: their vectors decide synonym edges, which are to be the same on every
    machine. Passages and triples are computed in bfloat16 if the processor supports it.
    """

    def __init__(self, identity: EncoderIdentity, graph: Any, reader: TextReader, batch_size: int) -> None:
        """Compiles `graph`, made by `bert_graph`; some 0.5 s, may run in any thread."""
        self.identity = identity
        self._reader = reader
        self._batch_size = batch_size
        self._priority = QueryPriority()
        self._workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._workers, "encoder", lower_thread_priority)
        self._query = Bert(graph, self._workers)
        # Compiled by a low-priority thread: the engine's threads inherit its priority.
        self._exact = self._pool.submit(Bert, graph, self._workers).result()
        bfloat16 = partial(Bert, graph, self._workers, bfloat16=True)
        self._rough = self._pool.submit(bfloat16).result() if has_bfloat16() else self._exact
        self._remembered = lru_cache(CACHED_QUERIES)(self._encode_query)

    def encode(self, texts: Sequence[str]) -> Matrix:
        return self._encode(texts, self._exact)

    def encode_roughly(self, texts: Sequence[str]) -> Matrix:
        return self._encode(texts, self._rough)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        return self._remembered(tokenizable(text, MAX_QUERY_CHARS))

    def known_words(self, text: str) -> float:
        """1 of a model for many languages: it has words of any in pieces."""
        if not self._reader.one_language:
            return 1.0
        encoded = self._reader.tokenizer.encode(self._reader.prepare(tokenizable(text, MAX_QUERY_CHARS)))
        return self._reader.vocabulary.whole_words(encoded.ids, encoded.word_ids)

    def _encode(self, texts: Sequence[str], bert: Bert) -> Matrix:
        vectors = np.zeros((len(texts), self.identity.dim), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = [tokenizable(text, MAX_INDEXED_CHARS) for text in texts[start : start + _TEXTS_AT_ONCE]]
            windows = [list(self._windows(text, self._reader.passage_prefix)) for text in part]
            found = self._run_all(bert, [tokens for each in windows for tokens in each])
            vectors[start : start + len(part)] = self._vectors_of_texts(found, windows)
        return vectors

    def _encode_query(self, text: str) -> NDArray[np.float32]:
        windows = list(self._windows(text, self._reader.query_prefix))
        with self._priority.query_under_way():
            found = [self._query(np.array([tokens])) for tokens in windows]
        empty = np.zeros((0, self.identity.dim), np.float32)
        vector: NDArray[np.float32] = self._vectors_of_texts(np.concatenate([empty, *found]), [windows])[0]
        vector.setflags(write=False)
        return vector

    def _windows(self, text: str, prefix: str) -> Iterator[list[int]]:
        """The tokens of each window of a text that the model knows something of."""
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
        # A window that was cut inside of a word may have a token or two more by itself.
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
            # Few at a time, so that another caller's texts come in between.
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
        """The sequences by length, shortest first: up to `CALL_TOKENS` and `batch_size` together, at least one."""
        by_length: dict[int, list[int]] = {}
        for row, ids in enumerate(sequences):
            by_length.setdefault(len(ids), []).append(row)
        for length, known in sorted(by_length.items()):
            size = max(1, min(self._batch_size, CALL_TOKENS // length))
            for start in range(0, len(known), size):
                rows = known[start : start + size]
                yield rows, np.array([sequences[row] for row in rows])
