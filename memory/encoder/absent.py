"""Replaces the encoder of a store's vectors if it cannot be loaded, until the store is re-encoded."""

from collections.abc import Sequence
from typing import NoReturn

from memory.encoder.errors import EncoderServerDown
from memory.types import Encoder, Matrix
from store.types import EncoderIdentity


class AbsentEncoder(Encoder):
    """An encoder that encodes nothing: documents wait, and queries are answered by words only (mode `bm25`)."""

    remote = True

    def __init__(self, identity: EncoderIdentity, reason: str) -> None:
        self.identity = identity
        self._reason = reason

    def encode(self, _texts: Sequence[str]) -> Matrix:
        self._refuse()

    def encode_query(self, _text: str) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise EncoderServerDown(
            f"the encoder {self.identity.name} of the memory's vectors cannot be loaded: {self._reason}"
        )
