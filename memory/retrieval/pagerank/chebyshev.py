"""Personalized PageRank on the undirected, weighted graph of phrases and passages.

Let A be the symmetric matrix of weights, D its row sums, P = A D⁻¹ (with a column of zeros for a node without edges), r the
reset probabilities and d the damping. PageRank is the solution y of y = (1 - d) r + d P y, scaled to sum to 1. The mass of a
node without edges is lost. igraph's prpack returns this mass to r instead, which only rescales y (Gleich, "PageRank beyond the
Web" (2015), section 2).

Chebyshev's semi-iteration solves the equation (Golub and Varga 1961; Varga, "Matrix Iterative Analysis", section 5.1). P is
similar to the symmetric D^-½ A D^-½, so d P has real eigenvalues in [-d, d] and the recurrence

    y₍ₖ₊₁₎ = ω₍ₖ₊₁₎ (g(yₖ) - y₍ₖ₋₁₎) + y₍ₖ₋₁₎,   g(y) = (1 - d) r + d P y,
    ω₁ = 1,  ω₂ = 2 / (2 - d²),  ω₍ₖ₊₁₎ = 1 / (1 - d² ωₖ / 4)

reduces the error by the factor σ = d / (1 + √(1 - d²)) per step; plain iteration reduces it by d. For d = 0.5, these factors
are 0.27 and 0.5.

The iteration stops at a proven bound. No column of P sums to more than 1, so ‖P‖₁ ≤ 1, and g is a contraction in the L1 norm
with factor d. With the residual ρ = g(y) - y and the solution y*,  ‖y - y*‖₁ ≤ ‖ρ‖₁ / (1 - d). The returned vector is g(y),
which is already computed, and  ‖g(y) - y*‖₁ ≤ d ‖ρ‖₁ / (1 - d).

The first steps use float32, which halves the memory traffic. The bound holds for any y but requires an exact ρ, so it is
evaluated in float64 steps only.
"""

from collections.abc import Callable
from math import ceil, log, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.passage_weights import Floats
from store.index.graph.base_order import BaseOrder

DEFAULT_TOLERANCE = 1e-10
"""Default bound on the L1 distance from the exact PageRank; precise enough for any ranking."""
MIN_TOLERANCE = 1e-13
"""With a smaller tolerance, the rounding of float64 sums could exceed the bound."""

EARLY_STOP_ERROR = 5e-7
"""L1 error below which `stop_early` is called to decide whether the PageRank is precise enough for the caller."""

FLOAT32_RESIDUAL = 3e-6
"""L1 norm of the residual down to which steps use float32: about ten times their rounding error."""

FLOAT32_STALL_RATIO = 0.97
"""If a float32 step leaves more than this share of the previous residual, float32 gains no more precision, and float64 steps
follow. With a damping near 1, the residual may never reach `FLOAT32_RESIDUAL`."""

_SPARE_ITERATIONS = 20
_MIN_RATE = 1e-300
"""Replaces a rate that underflows to 0 if the damping is very small."""

IsPreciseEnough = Callable[[Floats, float], bool]
"""Called with the PageRank and a bound on the L1 norm of its error; returns whether the PageRank is precise enough."""


class AdjacencyMatrix(Protocol):
    """A symmetric matrix of non-negative edge weights."""

    def matvec(self, x: NDArray[Any], /) -> NDArray[Any]:
        """Returns A @ x in a new array; both have shape (nodes,). For a float32 `x`, the product may have float32 precision."""
        ...


def pagerank_reordered(
    graph: BaseOrder, reset: Floats, damping: float, stop_early: IsPreciseEnough | None = None
) -> Floats:
    """Calls `pagerank` in the graph's own order of nodes; `reset`, the result and the argument of `stop_early` have the usual
    order."""

    def stop_early_inside(image: Floats, error: float) -> bool:
        return stop_early is not None and stop_early(graph.leave(image), error)

    inside = None if stop_early is None else stop_early_inside
    return graph.leave(pagerank(graph, graph.degrees, graph.enter(reset), damping, stop_early=inside))


def pagerank(
    adjacency: AdjacencyMatrix,
    degrees: Floats,
    reset: Floats,
    damping: float = 0.5,
    tolerance: float = DEFAULT_TOLERANCE,
    stop_early: IsPreciseEnough | None = None,
) -> Floats:
    """Returns the PageRank of every node, shape (nodes,), without negative entries; the L1 norm of its error is at most
    `tolerance`.

    If `stop_early` returns true, the iteration ends early, with an error of at most `EARLY_STOP_ERROR`. `degrees`: row sums of
    `adjacency`, shape (nodes,). `reset`: weights, shape (nodes,), not all zero; they are scaled to sum to 1. Raises
    `ValueError` for arguments out of range. Raises `ArithmeticError` if the iteration does not reach the bound in the number of
    steps that theory guarantees; then `adjacency` is not symmetric, or `degrees` are not its row sums.
    """
    reset = _checked(degrees, reset, damping, tolerance)
    linked = degrees > 0
    if not damping or not linked.any():
        return reset
    total = unscaled_sum(reset, degrees, damping)
    base = (1.0 - damping) * reset
    inverse = np.divide(damping, degrees, out=np.zeros_like(reset), where=linked)
    enough = tolerance * total * (1.0 - damping) / damping

    exact = base, inverse
    base, inverse = base.astype(np.float32), inverse.astype(np.float32)
    before, now, omega, last = base, base, 1.0, np.inf
    for _ in range(_max_iterations(degrees, linked, damping, tolerance)):
        in_float32 = now.dtype == np.float32
        image = adjacency.matvec(now * inverse).astype(now.dtype, copy=False)
        image += base
        step = image - now
        moved = float(np.abs(step, out=step).sum())
        if not in_float32 and (moved <= enough or _may_stop(stop_early, image, moved, total, damping)):
            # The solution has no negative entries, so clipping negative rounding errors reduces the error.
            np.maximum(image, 0.0, out=image)
            image /= total
            return image
        if before is now:
            before, now, omega = now, image, 2.0 / (2.0 - damping * damping)
        else:
            image -= before
            image *= omega
            image += before
            before, now, omega = now, image, 1.0 / (1.0 - damping * damping * omega / 4.0)
        if in_float32 and (moved <= FLOAT32_RESIDUAL * total or moved >= FLOAT32_STALL_RATIO * last):
            before, now, (base, inverse) = before.astype(np.float64), now.astype(np.float64), exact
        last = moved
    raise ArithmeticError(
        "PageRank did not converge: the adjacency is not symmetric, has negative weights, or the degrees are not its row sums."
    )


def unscaled_sum(reset: Floats, degrees: Floats, damping: float) -> float:
    """Returns the sum of y before scaling, given the reset probabilities and the degrees of the start nodes.

    Nodes with edges pass on all their mass; nodes without edges have only their reset mass.
    """
    return 1.0 - damping * float(reset[degrees <= 0].sum())


def _may_stop(stop_early: IsPreciseEnough | None, image: Floats, moved: float, total: float, damping: float) -> bool:
    error = moved * damping / (1.0 - damping)
    return stop_early is not None and error <= EARLY_STOP_ERROR * total and stop_early(image, error)


def _checked(degrees: Floats, reset: Floats, damping: float, tolerance: float) -> Floats:
    """Returns the reset probabilities. Raises `ValueError` if an argument is out of range."""
    if degrees.shape != reset.shape or degrees.ndim != 1:
        raise ValueError(
            f"Degrees have shape {degrees.shape} and reset {reset.shape}; both must have one entry per node."
        )
    if not 0.0 <= damping < 1.0:
        raise ValueError(f"Damping is {damping}; it must be at least 0 and below 1.")
    if not tolerance >= MIN_TOLERANCE:
        raise ValueError(f"Tolerance is {tolerance}; it must be at least {MIN_TOLERANCE}.")
    least, largest = reset.min(initial=0.0), reset.max(initial=0.0)  # NaN if a weight is NaN
    if not (least >= 0.0 and largest < np.inf):
        raise ValueError("A reset weight is negative or not a number.")
    if largest == 0.0:
        raise ValueError("All reset weights are zero: the walk has nowhere to start.")
    # Dividing by the largest weight first keeps the proportions of weights near the limits of float64.
    scaled: Floats = reset / largest
    scaled /= scaled.sum()
    return scaled


def _max_iterations(degrees: Floats, linked: NDArray[np.bool_], damping: float, tolerance: float) -> int:
    """Returns an upper bound on the number of steps that the iteration needs.

    In the norm √(Σ eᵢ²/Dᵢ), in which P is symmetric, the error after k steps is at most 2 σᵏ times the initial error.
    Converting to the L1 norm and back costs a factor of at most √(ΣD / min D) (Cauchy-Schwarz), and the residual is at most 1 +
    d times the error.
    """
    spread = sqrt(float(degrees.sum()) / float(degrees.min(initial=np.inf, where=linked)))
    rate = max(damping / (1.0 + sqrt(1.0 - damping * damping)), _MIN_RATE)
    return ceil(log(4.0 * spread / (tolerance * (1.0 - damping) ** 2)) / -log(rate)) + _SPARE_ITERATIONS
