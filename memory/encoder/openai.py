"""Embeddings from a server that speaks OpenAI's protocol (`/v1/embeddings`)."""

import random
import time
from collections.abc import Sequence
from functools import lru_cache

import httpx
import numpy as np
import openai
from numpy.typing import NDArray

from memory.encoder.errors import EncoderRefused, EncoderServerDown
from memory.encoder.prefixes import prefixes
from memory.encoder.text import tokenisable
from memory.types import Matrix
from store.types import EncoderIdentity

QUERIES_REMEMBERED = 64
TEXT_CHARS = 32_000
"""What is sent of a text at most; the models read some 8,000 tokens of it, often 512."""
PROBE = "hippod"
"""A text that is no document's: to learn the vectors' length, and whether the server works."""
REFUSALS = (400, 413, 422)
"""What a server answers to texts that it does not take; too long, say."""
QUERY_TRIES = 2
"""A query does not wait for the retries that indexing has time for."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 20.0


class ServerEncoder:
    """`memory.types.Encoder` over a server. Queries have a connection of their own: they never wait for a batch."""

    def __init__(
        self,
        base_url: str,
        model: str,
        key: str | None,
        batch_size: int,
        timeout_s: float,
        max_retries: int,
        given: tuple[str | None, str | None] = (None, None),
        known_dim: int | None = None,
    ) -> None:
        """Asks the server once, to learn the vectors' length. Raises EncoderUnavailable when it does not answer and the
        length is not known from an earlier time (`known_dim`)."""
        self._openai = openai.OpenAI(base_url=base_url, api_key=key or "none", timeout=timeout_s, max_retries=0)
        self._host = base_url.split("://", 1)[-1].split("/", 1)[0].rsplit("@", 1)[-1]
        self._key = key
        self._model = model
        self._batch_size = batch_size
        self._retries = max_retries
        self.away: str | None = None
        """Why the server did not answer when it was asked for the vectors' length, where `known_dim` took its place."""
        known = prefixes(model)
        self._query_prefix = known[0] if given[0] is None else given[0]
        self._passage_prefix = known[1] if given[1] is None else given[1]
        self._remembered = lru_cache(QUERIES_REMEMBERED)(self._encode_query)
        self.identity = EncoderIdentity(f"openai/{model}", self._length(known_dim, max_retries + 1))

    def _length(self, known: int | None, tries: int) -> int:
        try:
            return len(self._ask([self._passage_prefix + PROBE], 1 if known else tries)[0])
        except EncoderServerDown as error:
            if known is None:
                raise
            self.away = str(error)
            return known

    def encode(self, texts: Sequence[str]) -> Matrix:
        vectors = np.empty((len(texts), self.identity.dim), dtype=np.float32)
        for start in range(0, len(texts), self._batch_size):
            batch = [
                self._passage_prefix + tokenisable(text, TEXT_CHARS) for text in texts[start : start + self._batch_size]
            ]
            vectors[start : start + len(batch)] = self._unit(self._asked(batch))
        return vectors

    def encode_roughly(self, texts: Sequence[str]) -> Matrix:
        return self.encode(texts)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._remembered(tokenisable(text, TEXT_CHARS))
        return vector

    def _encode_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._unit(self._ask([self._query_prefix + text], QUERY_TRIES))[0]
        vector.setflags(write=False)
        return vector

    def _asked(self, texts: list[str]) -> list[list[float]]:
        """`_ask` for documents. A server that answers another question meanwhile is not away: then it is for the texts."""
        try:
            return self._ask(texts, self._retries + 1)
        except EncoderServerDown as error:
            if error.status is None or (error.status < 500 and error.status not in REFUSALS):
                raise
            try:
                self._ask([self._passage_prefix + PROBE], 1)
            except EncoderServerDown:
                raise error from None
            raise EncoderRefused(str(error), error.unquoted, error.status) from None

    def _unit(self, rows: list[list[float]]) -> Matrix:
        found = np.asarray(rows, dtype=np.float32)
        if found.shape[1] != self.identity.dim or not np.isfinite(found).all():
            raise EncoderServerDown(
                f"The embedding server {self._host} now answers with {found.shape[1]} dimensions, and {self.identity.name} "
                f"had {self.identity.dim}, or with numbers that are none; has its model been changed?"
            )
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        unit: Matrix = np.ascontiguousarray(found / np.where(norms > 0, norms, 1), dtype=np.float32)
        return unit

    def _ask(self, texts: list[str], tries: int) -> list[list[float]]:
        """One vector a text, in order."""
        for left in range(tries - 1, -1, -1):
            try:
                answer = self._openai.embeddings.create(model=self._model, input=texts, encoding_format="float")
                rows = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
                if len(rows) != len(texts) or len({len(row) for row in rows}) != 1 or not rows[0]:
                    raise EncoderServerDown(f"The embedding server {self._host} did not answer with one vector a text.")
                return rows
            except openai.OpenAIError as error:
                if not left or not _passing(error):
                    status = error.status_code if isinstance(error, openai.APIStatusError) else None
                    raise EncoderServerDown(self._said(error), self._unquoted(error), status) from None
                time.sleep(_pause(tries - left, error))
            except (TypeError, ValueError, AttributeError, KeyError) as error:
                what = f"The embedding server {self._host} does not speak the protocol"
                raise EncoderServerDown(f"{what}: {error}", f"{what} ({type(error).__name__})") from None
        raise AssertionError("unreachable")

    def _said(self, error: openai.OpenAIError) -> str:
        reason = " ".join(str(error.__cause__ or error).split())[:300]
        if self._key:
            reason = reason.replace(self._key, "***")
        return self._sentence(f"{type(error).__name__}: {reason}")

    def _unquoted(self, error: openai.OpenAIError) -> str:
        """Without the server's words; in full where no connection was made, since nobody had been asked anything."""
        cause = error.__cause__
        if isinstance(error, openai.APIStatusError):
            return self._sentence(f"{type(error).__name__}, status {error.status_code}")
        if isinstance(cause, httpx.ConnectError):
            return self._sentence(f"{type(error).__name__}: {cause}")
        return self._sentence(f"{type(error).__name__}: {type(cause or error).__name__}")

    def _sentence(self, why: str) -> str:
        return (
            f"The embedding server {self._host} does not answer for model {self._model} ({why}); "
            "check [encoder] base_url or [llm] base_url, the model's name and the key."
        )


def _passing(error: openai.OpenAIError) -> bool:
    """Whether another try may go better."""
    if isinstance(error, openai.APIStatusError):
        return error.status_code in (408, 409, 425, 429) or error.status_code >= 500
    return isinstance(error, openai.APIConnectionError)


def _pause(tried: int, error: openai.OpenAIError) -> float:
    if isinstance(error, openai.APIStatusError):
        try:
            return min(max(float(error.response.headers.get("retry-after", "")), 0.0), 60.0)
        except ValueError:
            pass
    return min(FIRST_PAUSE_S * 2.0 ** (tried - 1), LONGEST_PAUSE_S) * (0.5 + 0.5 * random.random())
