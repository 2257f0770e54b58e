"""Encoders, which turn texts into vectors. `make_encoder` makes the encoder of any backend; `registry` declares the
backends."""

import sys

from memory.encoder.errors import EncoderUnavailable
from memory.encoder.registry import EmbeddingServer, identity_before_loading, make_encoder

for _unused in ("openvino.tools.ovc", "openvino_telemetry"):
    # OpenVINO's model converter imports a client that reports usage. These entries prevent both imports, so nothing is sent.
    # They are set here, because every file of this package that imports OpenVINO does so after this one.
    sys.modules.setdefault(_unused, None)  # type: ignore[arg-type]

__all__ = ["EmbeddingServer", "EncoderUnavailable", "identity_before_loading", "make_encoder"]
