"""Embeddings from a server that speaks OpenAI's protocol (`/v1/embeddings`)."""

from collections.abc import Sequence
from functools import lru_cache

import httpx2
import numpy as np
import openai
from numpy.typing import NDArray

from memory.encoder.errors import EncoderRefused, EncoderServerDown
from memory.encoder.registry import EmbeddingServer
from memory.encoder.text_preparation import (
    phrase_query_prefix_of,
    prefixes_of,
    tokenizable,
    triple_query_prefix_of,
)
from memory.llm.errors import host_of, one_line
from memory.types import Encoder, Matrix
from store.types import EncoderIdentity

CACHED_SERVER_QUERIES = 64
MAX_TEXT_CHARS = 32_000
"""Maximum number of characters of a text that are sent. Models read the first 8,000 tokens or so, often only 512."""
MAX_REASON_CHARS = 300
"""Maximum number of characters of a server's message that an error quotes."""
PROBE_TEXT = "hippod"
"""A text that belongs to no document. It is sent to find the vectors' dimension and to test the server."""
REFUSED_TEXT_STATUSES = (400, 413, 422)
"""Status codes with which servers refuse texts, for example texts that are too long."""
QUERY_RETRIES = 1
"""Retries of a query; fewer than for indexing, because a user waits."""


class OpenAIEncoder(Encoder):
    """Queries have their own connection, so they never wait for a batch."""

    remote = True
    passage_prefix: str

    def __init__(self, model: str, batch_size: int, server: EmbeddingServer) -> None:
        """Sends one request to find the vectors' dimension.

        Raises EncoderUnavailable if the server does not answer and `server.known_dim` is None.
        """
        self._openai = openai.OpenAI(
            base_url=server.base_url,
            api_key=server.key or "none",
            timeout=server.timeout_s,
            max_retries=server.max_retries,
            # After a redirect, the texts would go to a server that the configuration does not name.
            http_client=openai.DefaultHttpxClient(follow_redirects=False),
        )
        self._host = host_of(server.base_url)
        self._key = server.key
        self._model = model
        self._batch_size = batch_size
        self._retries = server.max_retries
        query_prefix, passage_prefix = prefixes_of(model)
        self._query_prefix = query_prefix if server.query_prefix is None else server.query_prefix
        self.passage_prefix = passage_prefix if server.passage_prefix is None else server.passage_prefix
        given = server.query_prefix if server.triple_query_prefix is None else server.triple_query_prefix
        self._triple_query_prefix = triple_query_prefix_of(model) if given is None else given
        self._phrase_query_prefixes = {}
        for is_name, own in ((False, server.phrase_query_prefix), (True, server.name_query_prefix)):
            given = server.query_prefix if own is None else own
            self._phrase_query_prefixes[is_name] = phrase_query_prefix_of(model, is_name) if given is None else given
        self._cached_query = lru_cache(CACHED_SERVER_QUERIES)(self._encode_query)
        self.identity = EncoderIdentity(f"openai/{model}", self._dim(server.known_dim))

    def _dim(self, known: int | None) -> int:
        try:
            return len(self._request([self.passage_prefix + PROBE_TEXT], 0 if known else self._retries)[0])
        except EncoderServerDown as error:
            if known is None:
                raise
            self.start_error = str(error)
            return known

    def encode(self, texts: Sequence[str]) -> Matrix:
        vectors = np.empty((len(texts), self.identity.dim), dtype=np.float32)
        for start in range(0, len(texts), self._batch_size):
            batch = [
                self.passage_prefix + tokenizable(text, MAX_TEXT_CHARS)
                for text in texts[start : start + self._batch_size]
            ]
            vectors[start : start + len(batch)] = self._normalised(self._request_for_indexing(batch))
        return vectors

    def encode_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._cached_query(self._query_prefix + tokenizable(text, MAX_TEXT_CHARS))
        return vector

    def encode_triple_query(self, text: str) -> NDArray[np.float32]:
        """Like `encode_query`, with the prefix for triples. If the two prefixes are equal, one request serves both methods."""
        vector: NDArray[np.float32] = self._cached_query(self._triple_query_prefix + tokenizable(text, MAX_TEXT_CHARS))
        return vector

    def encode_phrase_query(self, text: str, is_name: bool) -> NDArray[np.float32]:
        """Like `encode_query`, with the prefix for phrases or for names. Equal prefixes share one request."""
        prefix = self._phrase_query_prefixes[is_name]
        vector: NDArray[np.float32] = self._cached_query(prefix + tokenizable(text, MAX_TEXT_CHARS))
        return vector

    def _encode_query(self, prefixed: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._normalised(self._request([prefixed], QUERY_RETRIES))[0]
        vector.setflags(write=False)
        return vector

    def _request_for_indexing(self, texts: list[str]) -> list[list[float]]:
        """Like `_request`. Raises EncoderRefused if the server fails on these texts but encodes the probe text."""
        try:
            return self._request(texts, self._retries)
        except EncoderServerDown as error:
            if error.status is None or (error.status < 500 and error.status not in REFUSED_TEXT_STATUSES):
                raise
            try:
                self._request([self.passage_prefix + PROBE_TEXT], 0)
            except EncoderServerDown:
                raise error from None
            raise EncoderRefused(str(error), error.loggable, error.status) from None

    def _normalised(self, rows: list[list[float]]) -> Matrix:
        found = np.asarray(rows, dtype=np.float32)
        if found.shape[1] != self.identity.dim or not np.isfinite(found).all():
            raise EncoderServerDown(
                f"The embedding server {self._host} answered with vectors of {found.shape[1]} dimensions "
                f"({self.identity.name} has {self.identity.dim}), or with values that are not numbers. Was its model changed?"
            )
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        unit: Matrix = np.ascontiguousarray(found / np.where(norms > 0, norms, 1), dtype=np.float32)
        return unit

    def _request(self, texts: list[str], retries: int) -> list[list[float]]:
        """Returns one vector per text, in order. OpenAI's client retries with backoff or after `Retry-After`."""
        try:
            client = self._openai.with_options(max_retries=retries)
            answer = client.embeddings.create(model=self._model, input=texts, encoding_format="float")
            rows = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        except openai.OpenAIError as error:
            status = error.status_code if isinstance(error, openai.APIStatusError) else None
            raise EncoderServerDown(self._message(error), self._loggable_message(error), status) from None
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            what = f"The embedding server {self._host} does not speak the protocol"
            raise EncoderServerDown(f"{what}: {error}", f"{what} ({type(error).__name__})") from None
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1 or not rows[0]:
            raise EncoderServerDown(f"The embedding server {self._host} did not answer with one vector per text.")
        return rows

    def _message(self, error: openai.OpenAIError) -> str:
        reason = str(error.__cause__ or error)
        if isinstance(error, openai.APIStatusError) and "location" in error.response.headers:
            reason += f"; it redirects to {error.response.headers['location']}"
        return self._sentence(f"{type(error).__name__}: {one_line(reason, self._key, MAX_REASON_CHARS)}")

    def _loggable_message(self, error: openai.OpenAIError) -> str:
        """Returns the message without the server's words. It is complete if no connection was made, because then no text was
        sent."""
        cause = error.__cause__
        if isinstance(error, openai.APIStatusError):
            return self._sentence(f"{type(error).__name__}, status {error.status_code}")
        if isinstance(cause, httpx2.ConnectError):
            return self._sentence(f"{type(error).__name__}: {cause}")
        return self._sentence(f"{type(error).__name__}: {type(cause or error).__name__}")

    def _sentence(self, why: str) -> str:
        return (
            f"The embedding server {self._host} does not answer for model {self._model} ({why}); "
            "check [encoder] base_url or [llm] base_url, the model's name and the key."
        )
