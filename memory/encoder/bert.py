"""BERT's forward pass over packed token sequences (Devlin et al. 2019; the encoder of Vaswani et al. 2017, section 3.1).

Why not the library's: all sequences lie one after the other in one matrix of tokens, so nothing is padded, and the linear
layers, nine tenths of the work, go to oneDNN with weights laid out for it once. `torch.nn.functional.linear` in float32
goes to MKL, which on AMD processors runs at less than half of that. Each row of a product is computed in the same order
whatever stands in the other rows; hence a text's vector does not depend on its neighbours.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn import functional

Linear = Callable[[Tensor], Tensor]
Norm = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class BertShape:
    """The parts of the model's `config.json` that the forward pass needs."""

    layers: int
    heads: int
    hidden: int
    norm_epsilon: float


@dataclass(frozen=True, slots=True)
class Layer:
    """One encoder block; `intermediate` includes the GELU."""

    query_key_value: Linear
    attention_output: Linear
    attention_norm: Norm
    intermediate: Linear
    output: Linear
    output_norm: Norm


class Bert:
    """Mean-pooled, L2-normalised sentence embeddings of one BERT on the CPU. Stateless after loading, so thread-safe."""

    def __init__(self, weights: Path, shape: BertShape) -> None:
        with safe_open(str(weights), framework="pt") as file:
            self._shape = shape
            self._dtype = torch.float32
            # Copies: what safetensors hands out points into the mapped file, which an upgrade may replace.
            self._words = file.get_tensor("embeddings.word_embeddings.weight").clone()
            first_segment = file.get_tensor("embeddings.token_type_embeddings.weight")[0]
            self._places = file.get_tensor("embeddings.position_embeddings.weight") + first_segment
            self._embedding_norm = _norm(file, "embeddings.LayerNorm", shape)
            self._layers = [_layer(file, f"encoder.layer.{i}", shape, self._dtype) for i in range(shape.layers)]

    def in_bfloat16(self, weights: Path) -> "Bert | None":
        """The same model with linear layers and attention in bfloat16; sums along the residual stream stay float32, embeddings
        are shared. `weights`: the file that this one came from.

        Where the processor multiplies bfloat16 (`has_bfloat16`) it takes 0.57 of the time, with AMX 0.4; cosines with this
        one's vectors are 0.99996 and more. None where the processor's products would make a text's vector depend on its
        neighbours.
        """
        other = object.__new__(Bert)
        other._shape, other._dtype = self._shape, torch.bfloat16
        other._words, other._places, other._embedding_norm = self._words, self._places, self._embedding_norm
        with safe_open(str(weights), framework="pt") as file:
            layers = [
                _layer(file, f"encoder.layer.{i}", self._shape, torch.bfloat16) for i in range(self._shape.layers)
            ]
        for name in ("query_key_value", "attention_output", "intermediate", "output"):
            # The layers' shapes are the same, and it is by shapes that oneDNN chooses.
            width = self._shape.hidden * (4 if name == "output" else 1)
            if _rows_are_independent(getattr(layers[0], name), width):
                continue
            layers = [replace(layer, **{name: _in_pieces(getattr(layer, name))}) for layer in layers]
            if not _rows_are_independent(getattr(layers[0], name), width):
                return None
        other._layers = layers
        return other

    def __call__(self, groups: Sequence[Tensor], between: Callable[[], None] | None = None) -> Tensor:
        """Embeddings, shape (sum of n, hidden), of sequences grouped by length: each group int64, shape (n, length).

        `between` is called before each layer.
        """
        hidden = self._shape.hidden
        counts = [group.numel() for group in groups]
        padding = torch.zeros(_rounded(sum(counts)) - sum(counts), hidden)
        attended_padding = padding.to(self._dtype)
        tokens = [self._words[group].add_(self._places[: group.shape[1]]).view(-1, hidden) for group in groups]
        x = self._embedding_norm(torch.cat([*tokens, padding]))
        for layer in self._layers:
            if between is not None:
                between()
            attended = torch.cat([*self._attention(layer.query_key_value(x), groups, counts), attended_padding])
            x = layer.attention_norm(x.add_(layer.attention_output(attended)))
            x = layer.output_norm(x.add_(layer.output(layer.intermediate(x))))
        means = [rows.view(*group.shape, hidden).mean(dim=1) for rows, group in _split(x, groups, counts)]
        return functional.normalize(torch.cat(means))

    def _attention(self, projected: Tensor, groups: Sequence[Tensor], counts: list[int]) -> Iterator[Tensor]:
        """Softmax(QKᵀ/√d)V of each sequence over itself: (tokens, 3 · hidden) to (tokens, hidden), group by group."""
        hidden, heads = self._shape.hidden, self._shape.heads
        for rows, group in _split(projected, groups, counts):
            query, key, value = rows.view(*group.shape, 3, heads, hidden // heads).permute(2, 0, 3, 1, 4)
            yield functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(-1, hidden)


def _split(rows: Tensor, groups: Sequence[Tensor], counts: list[int]) -> Iterator[tuple[Tensor, Tensor]]:
    """Each group's rows, without the padding, and the group."""
    return zip(torch.split(rows[: sum(counts)], counts), groups, strict=True)


def _rounded(rows: int) -> int:
    """`rows` or a little more: oneDNN compiles kernels for each height of a matrix and keeps them, some megabytes for each."""
    step = 8 if rows <= 32 else 32
    return -(-rows // step) * step


_PIECE = 32
_HEIGHTS = (8, 24, 32, 64, 160, 288, 352, 512)
"""Some of those that `_rounded` gives, from each range in which oneDNN was seen to sum in another order."""


def _in_pieces(linear: Linear) -> Linear:
    """The product made of `_PIECE` rows at a time: slower by some percent, and by one kernel however many rows there are."""
    return lambda x: torch.cat([linear(piece) for piece in torch.split(x, _PIECE)])


def _rows_are_independent(linear: Linear, width: int) -> bool:
    """Whether a row's product is the same whatever stands beside it; some milliseconds.

    With AMX oneDNN splits a long sum into parts whose number depends on the height of the matrix.
    """
    with torch.inference_mode():
        rows = torch.randn(_HEIGHTS[-1], width, generator=torch.Generator().manual_seed(0))
        whole = linear(rows)
        return all(torch.equal(linear(rows[:height]), whole[:height]) for height in _HEIGHTS)


def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16, and oneDNN is there to use that."""
    onednn = torch.ops.mkldnn
    return bool(torch._C._has_mkldnn and hasattr(onednn, "_linear_pointwise") and onednn._is_mkldnn_bf16_supported())


def _layer(file: Any, name: str, shape: BertShape, dtype: torch.dtype) -> Layer:
    projections = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
    return Layer(
        query_key_value=_linear(file, projections, dtype),
        attention_output=_linear(file, [f"{name}.attention.output.dense"], dtype),
        attention_norm=_norm(file, f"{name}.attention.output.LayerNorm", shape),
        intermediate=_linear(file, [f"{name}.intermediate.dense"], dtype, gelu=True),
        output=_linear(file, [f"{name}.output.dense"], dtype),
        output_norm=_norm(file, f"{name}.output.LayerNorm", shape),
    )


def _norm(file: Any, name: str, shape: BertShape) -> Norm:
    weight, bias = file.get_tensor(f"{name}.weight").clone(), file.get_tensor(f"{name}.bias").clone()
    return lambda x: functional.layer_norm(x, (shape.hidden,), weight, bias, shape.norm_epsilon)


_ROWS_TO_LAY_OUT_FOR = 512


def _linear(file: Any, names: Sequence[str], dtype: torch.dtype, *, gelu: bool = False) -> Linear:
    """One linear layer, or several of the same input side by side, followed by GELU if asked."""
    weight = torch.cat([file.get_tensor(f"{name}.weight") for name in names]).to(dtype)
    bias = torch.cat([file.get_tensor(f"{name}.bias") for name in names]).to(dtype)
    onednn = torch.ops.mkldnn
    if torch._C._has_mkldnn and hasattr(onednn, "_linear_pointwise"):
        packed = onednn._reorder_linear_weight(weight, _ROWS_TO_LAY_OUT_FOR)
        after = "gelu" if gelu else "none"
        return lambda x: cast("Tensor", onednn._linear_pointwise(x.to(dtype), packed, bias, after, [], "none"))
    if gelu:
        return lambda x: functional.gelu(functional.linear(x, weight, bias))
    return lambda x: functional.linear(x, weight, bias)
