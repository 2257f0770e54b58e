"""BERT's forward pass (Devlin et al. 2019; the encoder of Vaswani et al. 2017, section 3.1) as an OpenVINO graph.

hippod builds the graph from the published weights when it loads the encoder, so no second model file is needed.
docs/decisions/0001-encoder-engine.md gives the reasons for OpenVINO.
"""

import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import openvino
from numpy.typing import NDArray
from openvino import opset13 as op

from memory.types import Matrix

Tokens = NDArray[np.int64]
"""Token ids of sequences of one length, shape (n, length)."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """The dimensions of the model that the forward pass needs."""

    layers: int
    heads: int
    hidden: int
    norm_epsilon: float


class BertWeights(Protocol):
    """The weights of a model, by the tensor names of `BertModel`."""

    def tensor(self, name: str) -> NDArray[np.float32]: ...

    def word_vectors(self, tokens: openvino.Node) -> openvino.Node:
        """Returns the graph's node that converts token ids, shape (n, length), to word embeddings, shape (n, length,
        hidden)."""
        ...


def has_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 faster than float32."""
    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


class Bert:
    """Computes mean-pooled, L2-normalised sentence embeddings with a BERT on the CPU. Thread-safe.

    A sequence's vector does not depend on the other sequences of the same call.
    """

    def __init__(self, graph: openvino.Model, streams: int, *, bfloat16: bool = False) -> None:
        """Compiles `graph`, made by `bert_graph`. Its `streams` threads get the calling thread's priority.

        `bfloat16`: computes products and attention in bfloat16. The vectors then have a cosine of at least 0.9999 with the
        float32 vectors.
        """
        compiled = openvino.Core().compile_model(
            graph,
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": "bf16" if bfloat16 else "f32",
                "NUM_STREAMS": streams,
                "INFERENCE_NUM_THREADS": streams,  # one thread per stream, so no thread waits for another
                "ENABLE_CPU_PINNING": False,
            },
        )
        self._idle: queue.SimpleQueue[openvino.InferRequest] = queue.SimpleQueue()
        for _ in range(streams):
            self._idle.put(compiled.create_infer_request())

    def __call__(self, tokens: Tokens) -> Matrix:
        """Returns the embeddings of the sequences, shape (n, hidden). Waits while all streams are busy."""
        with self._request() as request:
            # `infer` deadlocked when called from short-lived threads.
            request.start_async([tokens])
            request.wait()
            vectors: Matrix = request.get_output_tensor().data.copy()
        return vectors

    @contextmanager
    def _request(self) -> Iterator[openvino.InferRequest]:
        request = self._idle.get()
        try:
            yield request
        finally:
            self._idle.put(request)


def bert_graph(weights: BertWeights, shape: BertShape) -> openvino.Model:
    """Returns the model as an OpenVINO graph from token ids, shape (n, length), to embeddings, shape (n, hidden)."""
    return _Graph(weights, shape).model()


def looked_up(table: NDArray[Any], rows: openvino.Node) -> openvino.Node:
    """Returns the graph's node that selects rows of a table."""
    return op.gather(_constant(table), rows, _constant(0))


class _Graph:
    def __init__(self, weights: BertWeights, shape: BertShape) -> None:
        self._weights = weights
        self._shape = shape

    def model(self) -> openvino.Model:
        tokens = op.parameter([-1, -1], openvino.Type.i64, name="tokens")
        x = self._norm(self._embeddings(tokens), "embeddings.LayerNorm")
        for layer in range(self._shape.layers):
            name = f"encoder.layer.{layer}"
            attended = self._linear(self._attention(x, f"{name}.attention.self"), f"{name}.attention.output.dense")
            x = self._norm(op.add(x, attended), f"{name}.attention.output.LayerNorm")
            inner = op.gelu(self._linear(x, f"{name}.intermediate.dense"), "erf")
            x = self._norm(op.add(x, self._linear(inner, f"{name}.output.dense")), f"{name}.output.LayerNorm")
        mean = op.reduce_mean(x, _constant([1]))
        return openvino.Model([op.normalize_l2(mean, _constant([1]), 1e-24, "max")], [tokens], "bert")

    def _embeddings(self, tokens: openvino.Node) -> openvino.Node:
        """Returns the sum of word, position and segment embeddings. All tokens are in the first segment."""
        segment = self._tensor("embeddings.token_type_embeddings.weight")[0]
        positions = self._tensor("embeddings.position_embeddings.weight") + segment
        length = op.gather(op.shape_of(tokens), _constant(1), _constant(0))
        places = looked_up(positions, op.range(_constant(0), length, _constant(1), "i64"))
        return op.add(self._weights.word_vectors(tokens), places)

    def _attention(self, x: openvino.Node, name: str) -> openvino.Node:
        """Returns softmax(QKᵀ/√d)V: each sequence attends to itself."""
        heads, hidden = self._shape.heads, self._shape.hidden
        query, key, value = (
            op.transpose(
                op.reshape(self._linear(x, f"{name}.{part}"), _constant([0, 0, heads, hidden // heads]), True),
                _constant([0, 2, 1, 3]),
            )
            for part in ("query", "key", "value")
        )
        attended = op.transpose(op.scaled_dot_product_attention(query, key, value), _constant([0, 2, 1, 3]))
        return op.reshape(attended, _constant([0, 0, hidden]), True)

    def _linear(self, x: openvino.Node, name: str) -> openvino.Node:
        product = op.matmul(x, _constant(self._tensor(f"{name}.weight")), False, True)
        return op.add(product, _constant(self._tensor(f"{name}.bias")))

    def _norm(self, x: openvino.Node, name: str) -> openvino.Node:
        normal = op.mvn(x, _constant([2]), True, self._shape.norm_epsilon, "inside_sqrt")
        scaled = op.multiply(normal, _constant(self._tensor(f"{name}.weight")))
        return op.add(scaled, _constant(self._tensor(f"{name}.bias")))

    def _tensor(self, name: str) -> NDArray[np.float32]:
        return self._weights.tensor(name)


def _constant(value: NDArray[Any] | Sequence[int] | int) -> openvino.Node:
    return op.constant(value if isinstance(value, np.ndarray) else np.array(value, np.int64))
