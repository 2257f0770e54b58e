"""Encoders for models that sentence-transformers can load, and for the packaged model on an accelerator."""

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.encoder.errors import EncoderUnavailable
from memory.encoder.priority import QueryPriority
from memory.encoder.text_preparation import (
    MAX_INDEXED_CHARS,
    MAX_QUERY_CHARS,
    pooled,
    rows_of_equal_length,
    rows_of_similar_length,
    text_windows,
    tokenizable,
)
from memory.encoder.unknown_text import Vocabulary
from memory.types import Encoder, Matrix
from store.types import EncoderIdentity

CACHED_QUERIES = 64
_CHARACTERS_A_TOKEN = 32
"""Before tokenising, a text is cut to this many characters per token of the model's maximum."""
_TEXTS_AT_ONCE = 1024


class SentenceTransformerEncoder(Encoder):
    """An encoder that uses `SentenceTransformer`, with the model's own prompts for documents and queries.

    On a processor, a batch contains texts with equal numbers of tokens, so nothing is padded. On an accelerator, a batch is
    full and contains texts of similar length, because small batches leave it idle. Results depend on the batch size and the
    padding, so a text's vector is reproducible to about 1e-6 in float32 (2.4e-4 in float16 on an H200). Texts longer than the
    model's maximum are cut, or encoded in windows (`text_windows`). A text that the tokeniser does not know
    (`memory.encoder.unknown_text`) has the zero vector.
    """

    def __init__(
        self,
        model: str,
        name: str,
        batch_size: int,
        device: str | None,
        triple_query_prefix: str | None = None,
        *,
        windows: bool = False,
    ) -> None:
        """Loads `model` (a folder, or a name on the Hugging Face hub or in its cache). Takes seconds; may run in any thread.

        `windows`: encodes long texts in windows. The model must have no prefixes, and its tokeniser must report offsets of
        tokens.
        """
        self._model = _load(model, name, device)
        self._windows = windows
        self._limit = MAX_INDEXED_CHARS if windows else _CHARACTERS_A_TOKEN * (self._model.max_seq_length or 512)
        tokenizer = self._model.tokenizer
        self._vocabulary = Vocabulary(tokenizer.get_vocab(), tokenizer.unk_token, tokenizer.all_special_ids)
        self._batch_size = batch_size
        self._triple_query_prefix = triple_query_prefix
        self._priority = QueryPriority()
        # Two threads cannot use the library's tokenisers at the same time.
        self._one_at_a_time = threading.Lock()
        self._remembered = lru_cache(CACHED_QUERIES)(self._encode_query)
        self.identity = EncoderIdentity(name, int(self._model.get_embedding_dimension()))

    def encode(self, texts: Sequence[str]) -> Matrix:
        vectors = np.zeros((len(texts), self.identity.dim), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = [tokenizable(text, self._limit) for text in texts[start : start + _TEXTS_AT_ONCE]]
            vectors[start : start + len(part)] = self._pooled(part, self._encode_windows)
        return vectors

    def _pooled(self, texts: list[str], encode: Callable[[list[str]], Matrix]) -> Matrix:
        windows = [self._cut(text) for text in texts]
        every = [window for each in windows for window in each]
        found, counts = encode(every), iter([len(tokens or ()) for tokens in self._tokens(every)])
        known = [[next(counts) for _ in each] for each in windows]
        kept = np.array([count > 0 for each in known for count in each], np.bool_)
        return pooled(found[kept], [[count for count in each if count] for each in known])

    def _cut(self, text: str) -> list[str]:
        if not self._windows:
            return [text]
        with self._one_at_a_time:
            spans = self._model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
            room = self._model.max_seq_length - self._model.tokenizer.num_special_tokens_to_add()
        return text_windows(text, spans, room)

    def _encode_windows(self, windows: list[str]) -> Matrix:
        vectors = np.zeros((len(windows), self.identity.dim), dtype=np.float32)
        lengths = [len(tokens or ()) for tokens in self._tokens(windows)]
        for rows in self._batches(lengths):
            self._priority.yield_to_queries()
            with self._one_at_a_time:
                vectors[rows] = self._model.encode_document(
                    [windows[row] for row in rows],
                    batch_size=len(rows),
                    normalize_embeddings=True,
                    show_progress_bar=False,
                )
        return vectors

    def _batches(self, lengths: list[int]) -> Iterator[list[int]]:
        if self._model.device.type == "cpu":
            return rows_of_equal_length(lengths, lambda _length: self._batch_size)
        return rows_of_similar_length(lengths, self._batch_size)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        return self._remembered(tokenizable(text, min(self._limit, MAX_QUERY_CHARS)), None)

    def encode_triple_query(self, text: str) -> NDArray[np.float32]:
        """Like `encode_query`, with the configured prefix for triples instead of the model's own prompt."""
        return self._remembered(tokenizable(text, min(self._limit, MAX_QUERY_CHARS)), self._triple_query_prefix)

    def _encode_query(self, text: str, prompt: str | None) -> NDArray[np.float32]:
        def encode(windows: list[str]) -> Matrix:
            with self._one_at_a_time:
                found = self._model.encode_query(
                    windows, prompt=prompt, normalize_embeddings=True, show_progress_bar=False
                )
            vectors: Matrix = np.asarray(found, dtype=np.float32)
            return vectors

        with self._priority.query_under_way():
            vector: NDArray[np.float32] = self._pooled([text], encode)[0]
        vector.setflags(write=False)
        return vector

    def _tokens(self, texts: list[str]) -> list[list[int] | None]:
        """Returns the tokens of each text; None for a text that the tokeniser does not know."""
        with self._one_at_a_time:
            ids = self._model.tokenizer(texts, truncation=True, max_length=self._model.max_seq_length)["input_ids"]
        return [tokens if self._vocabulary.knows(tokens) else None for tokens in ids]


def _load(model: str, name: str, device: str | None) -> Any:
    # Imported here, because the import takes seconds, and the packaged model and the hash encoder do not need it.
    from sentence_transformers import SentenceTransformer

    try:
        # Only safetensors are loaded: older weight files are pickles, which execute code.
        return SentenceTransformer(
            model, device=device, trust_remote_code=False, model_kwargs={"use_safetensors": True}
        )
    except Exception as error:
        # The library, the hub and the accelerator raise many types of errors; the message names the model and what to do.
        reason = str(error).strip().splitlines()
        raise EncoderUnavailable(
            f"The encoder {name} cannot be loaded on {device or 'the default device'} "
            f"({type(error).__name__}: {reason[0] if reason else 'no reason given'}); give [encoder] model the name of a "
            "sentence-transformers model with safetensors weights that this machine has in its Hugging Face cache or can "
            "download, a folder that holds one, or all-MiniLM-L6-v2, which is installed with hippod."
        ) from error
