"""Encoders, which turn texts into vectors. `make_encoder` makes the encoder of any backend; `registry` declares the
backends."""

from memory.encoder.errors import EncoderUnavailable
from memory.encoder.registry import EmbeddingServer, identity_before_loading, make_encoder

__all__ = ["EmbeddingServer", "EncoderUnavailable", "identity_before_loading", "make_encoder"]
