"""Personalized PageRank on the undirected, weighted graph of phrases and passages.

With A the symmetric weights, D its row sums, P = A D⁻¹ (a node without edges: a column of zeros), r the reset probabilities
and d the damping, PageRank is the y of y = (1 - d) r + d P y, scaled to sum to 1. A node without edges passes nothing on;
that its mass goes back to r, as igraph's prpack has it, only rescales y (Gleich, "PageRank beyond the Web" (2015),
section 2).

Solved by Chebyshev's semi-iteration (Golub and Varga 1961; Varga, "Matrix Iterative Analysis", section 5.1). P is similar
to the symmetric D^-½ A D^-½, so d P has real eigenvalues in [-d, d] and the recurrence

    y₍ₖ₊₁₎ = ω₍ₖ₊₁₎ (g(yₖ) - y₍ₖ₋₁₎) + y₍ₖ₋₁₎,   g(y) = (1 - d) r + d P y,
    ω₁ = 1,  ω₂ = 2 / (2 - d²),  ω₍ₖ₊₁₎ = 1 / (1 - d² ωₖ / 4)

shrinks the error by σ = d / (1 + √(1 - d²)) a step where plain iteration has d: 0.27 against 0.5.

It stops on a proven bound. No column of P sums to more than 1, hence ‖P‖₁ ≤ 1, g is a contraction in the L1 norm with
factor d, and with the residual ρ = g(y) - y and the solution y*:  ‖y - y*‖₁ ≤ ‖ρ‖₁ / (1 - d), and for g(y), which is at
hand and what is returned,  ‖g(y) - y*‖₁ ≤ d ‖ρ‖₁ / (1 - d).

The first steps are made in float32, which reads half the bytes. The bound holds for any y, however it came about, so long as
ρ itself is exact: it is only ever drawn from steps in float64.
"""

from collections.abc import Callable
from math import ceil, log, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

DEFAULT_TOLERANCE = 1e-10
"""L1 distance from the exact PageRank that is good enough for any ranking."""
MIN_TOLERANCE = 1e-13
"""Below this, the rounding of float64 sums could hide the bound."""

EARLY_STOP_ERROR = 5e-7
"""L1 error from which on `stop_early` is asked whether the PageRank is precise enough for the caller."""

FLOAT32_RESIDUAL = 3e-6
"""L1 norm of the residual down to which steps are made in float32: about ten times their rounding."""

FLOAT32_STALL_RATIO = 0.97
"""Share of the last residual; a float32 step that leaves more than this gains nothing more, and float64 takes over. With a
damping near 1 the residual may never come down to `FLOAT32_RESIDUAL`."""

_SPARE_ITERATIONS = 20
_LEAST_RATE = 1e-300
"""Stands in for the rate of a damping whose half is no number above 0."""

Float64Vector = NDArray[np.float64]

IsPreciseEnough = Callable[[Float64Vector, float], bool]
"""Takes a PageRank and a bound on the L1 norm of its error, in the same scale; says whether the caller needs no better one."""


class AdjacencyMatrix(Protocol):
    """A symmetric matrix of edge weights, none negative."""

    def matvec(self, x: NDArray[Any], /) -> NDArray[Any]:
        """A @ x, in an array of its own; both of shape (nodes,). Where `x` is float32, so may be the answer's precision."""
        ...


class ReorderedAdjacencyMatrix(AdjacencyMatrix, Protocol):
    """A matrix that numbers the nodes in an order of its own."""

    @property
    def degrees(self) -> Float64Vector: ...

    def enter(self, x: NDArray[Any], /) -> NDArray[Any]:
        """A vector over the nodes, put into the order of the matrix."""
        ...

    def leave(self, y: NDArray[Any], /) -> NDArray[Any]:
        """A vector in the order of the matrix, put back into the order of its users."""
        ...


def pagerank_reordered(
    graph: ReorderedAdjacencyMatrix, reset: Float64Vector, damping: float, stop_early: IsPreciseEnough | None = None
) -> Float64Vector:
    """`pagerank` of a graph with an order of its own; `reset`, the result and the argument of `stop_early` have the usual."""

    def stop_early_inside(image: Float64Vector, error: float) -> bool:
        return stop_early is not None and stop_early(graph.leave(image), error)

    inside = None if stop_early is None else stop_early_inside
    return graph.leave(pagerank(graph, graph.degrees, graph.enter(reset), damping, stop_early=inside))


def pagerank(
    adjacency: AdjacencyMatrix,
    degrees: Float64Vector,
    reset: Float64Vector,
    damping: float = 0.5,
    tolerance: float = DEFAULT_TOLERANCE,
    stop_early: IsPreciseEnough | None = None,
) -> Float64Vector:
    """PageRank of every node, shape (nodes,), none negative; the L1 norm of its error is at most `tolerance`.

    With `stop_early` the iteration ends as soon as that says so, with an error of at most `EARLY_STOP_ERROR`.
    `degrees` are the row sums of `adjacency`, shape (nodes,). `reset` are weights, shape (nodes,), not all zero; they are
    scaled to sum to 1. Raises `ValueError` for arguments out of range, `ArithmeticError` when the iteration does not reach
    the bound in the steps that theory needs, which means that `adjacency` is not symmetric or `degrees` not its row sums.
    """
    restart = _checked(degrees, reset, damping, tolerance)
    linked = degrees > 0
    if not damping or not linked.any():
        return restart
    # The sum of the solution before it is scaled: nodes with edges pass all their mass on, the others only get the restart's.
    alone = float(restart[~linked].sum())
    total = 1.0 - damping * alone
    base = (1.0 - damping) * restart
    inverse = np.divide(damping, degrees, out=np.zeros_like(restart), where=linked)
    enough = tolerance * total * (1.0 - damping) / damping

    exact = base, inverse
    base, inverse = base.astype(np.float32), inverse.astype(np.float32)
    before, now, omega, last = base, base, 1.0, np.inf
    for _ in range(_max_iterations(degrees[linked], damping, tolerance)):
        in_float32 = now.dtype == np.float32
        image = adjacency.matvec(now * inverse).astype(now.dtype, copy=False)
        image += base
        step = image - now
        moved = float(np.abs(step, out=step).sum())
        if not in_float32 and (moved <= enough or _may_stop(stop_early, image, moved, total, damping)):
            # The solution has no negative entry, so cutting those that rounding left only brings it nearer.
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


def _may_stop(
    stop_early: IsPreciseEnough | None, image: Float64Vector, moved: float, total: float, damping: float
) -> bool:
    error = moved * damping / (1.0 - damping)
    return stop_early is not None and error <= EARLY_STOP_ERROR * total and stop_early(image, error)


def _checked(degrees: Float64Vector, reset: Float64Vector, damping: float, tolerance: float) -> Float64Vector:
    """The reset probabilities; raises `ValueError` where an argument is out of range."""
    if degrees.shape != reset.shape or degrees.ndim != 1:
        raise ValueError(
            f"Degrees have shape {degrees.shape} and reset {reset.shape}; both must have one entry a node."
        )
    if not 0.0 <= damping < 1.0:
        raise ValueError(f"Damping is {damping}; it must be at least 0 and below 1.")
    if not tolerance >= MIN_TOLERANCE:
        raise ValueError(f"Tolerance is {tolerance}; it must be at least {MIN_TOLERANCE}.")
    if not (np.isfinite(reset).all() and (reset >= 0).all()):
        raise ValueError("A reset weight is negative or not a number.")
    largest = reset.max(initial=0.0)
    if largest == 0.0:
        raise ValueError("All reset weights are zero: the walk has nowhere to start.")
    # Divided by the largest first, so that weights near the ends of float64's range keep their proportions.
    scaled: Float64Vector = reset / largest
    scaled /= scaled.sum()
    return scaled


def _max_iterations(degrees: Float64Vector, damping: float, tolerance: float) -> int:
    """More steps than the iteration can need.

    In the norm √(Σ eᵢ²/Dᵢ), in which P is symmetric, the error after k steps is at most 2 σᵏ times the first one. Going to the
    L1 norm and back costs at most √(ΣD / min D) (Cauchy-Schwarz), and the residual is at most 1 + d times the error.
    """
    spread = sqrt(float(degrees.sum()) / float(degrees.min()))
    rate = max(damping / (1.0 + sqrt(1.0 - damping * damping)), _LEAST_RATE)
    return ceil(log(4.0 * spread / (tolerance * (1.0 - damping) ** 2)) / -log(rate)) + _SPARE_ITERATIONS
