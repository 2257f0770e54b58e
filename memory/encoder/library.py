"""Any other model that sentence-transformers can load, and the packaged one on an accelerator."""

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.encoder.errors import EncoderUnavailable
from memory.encoder.text import tokenisable
from memory.encoder.turns import Turns
from memory.types import Matrix
from store.types import EncoderIdentity

QUERIES_REMEMBERED = 64
_CHARACTERS_A_TOKEN = 32
"""A text is cut to this many characters for each token the model takes, before it is tokenised."""
_WINDOW_TEXTS = 1024


class LibraryEncoder:
    """`memory.types.Encoder` through `SentenceTransformer`, with the model's own prompts for documents and queries.

    Texts of one token length go through the model together, so nothing is padded. What the processor's or accelerator's
    kernels do with other batch sizes is theirs: a text's vector repeats to some 1e-6. Texts beyond the model's maximum
    are cut there.
    """

    def __init__(self, model: str, name: str, batch_size: int, device: str | None) -> None:
        """Loads `model` (a folder, or a name on the Hugging Face hub or in its cache); seconds, may run in any thread."""
        self._model = _load(model, name, device)
        self._limit = _CHARACTERS_A_TOKEN * (self._model.max_seq_length or 512)
        self._batch_size = batch_size
        self._turns = Turns()
        # The library's tokenisers refuse to be used by two threads at once.
        self._one_at_a_time = threading.Lock()
        self._remembered = lru_cache(QUERIES_REMEMBERED)(self._encode_query)
        self.identity = EncoderIdentity(name, int(self._model.get_embedding_dimension()))

    def encode(self, texts: Sequence[str]) -> Matrix:
        vectors = np.empty((len(texts), self.identity.dim), dtype=np.float32)
        for start in range(0, len(texts), _WINDOW_TEXTS):
            window = [tokenisable(text, self._limit) for text in texts[start : start + _WINDOW_TEXTS]]
            for rows in self._batches(window):
                self._turns.give_way()
                with self._one_at_a_time:
                    found = self._model.encode_document(
                        [window[row] for row in rows],
                        batch_size=len(rows),
                        normalize_embeddings=True,
                        show_progress_bar=False,
                    )
                vectors[[start + row for row in rows]] = found
        return vectors

    def encode_roughly(self, texts: Sequence[str]) -> Matrix:
        return self.encode(texts)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        return self._remembered(tokenisable(text, self._limit))

    def _encode_query(self, text: str) -> NDArray[np.float32]:
        with self._turns.query(), self._one_at_a_time:
            found = self._model.encode_query(text, normalize_embeddings=True, show_progress_bar=False)
        vector = np.asarray(found, dtype=np.float32)
        vector.setflags(write=False)
        return vector

    def _batches(self, texts: list[str]) -> list[list[int]]:
        """Rows of texts of equal token length, at most `batch_size` together, shortest first."""
        with self._one_at_a_time:
            ids = self._model.tokenizer(texts, truncation=True, max_length=self._model.max_seq_length)["input_ids"]
        by_length: dict[int, list[int]] = {}
        for row, sequence in enumerate(ids):
            by_length.setdefault(len(sequence), []).append(row)
        return [
            rows[i : i + self._batch_size]
            for _, rows in sorted(by_length.items())
            for i in range(0, len(rows), self._batch_size)
        ]


def _load(model: str, name: str, device: str | None) -> Any:
    # Imported here, as it takes seconds that the packaged model and the hash encoder do not need.
    from sentence_transformers import SentenceTransformer

    try:
        # Safetensors only: the older weight files are pickles, which run code when they are read.
        return SentenceTransformer(
            model, device=device, trust_remote_code=False, model_kwargs={"use_safetensors": True}
        )
    except Exception as error:
        # Whatever the library, the hub or the accelerator raised: the reader needs to know which model, and what to do.
        reason = str(error).strip().splitlines()
        raise EncoderUnavailable(
            f"The encoder {name} cannot be loaded on {device or 'the default device'} "
            f"({type(error).__name__}: {reason[0] if reason else 'no reason given'}); give [encoder] model the name of a "
            "sentence-transformers model with safetensors weights that this machine has in its Hugging Face cache or can "
            "download, a folder that holds one, or all-MiniLM-L6-v2, which is installed with hippod."
        ) from error
