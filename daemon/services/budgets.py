"""What a question may cost, from what a client asked for; and how it is said that a budget ended it."""

from daemon.contract import AskRequest
from memory.working.types import Budget

DEEP_STEPS = 3
"""Steps of `--deep` by default: where the HGMem paper finds its answers best."""
CALLS_A_STEP = 4
NO_LIMIT_S = 7 * 86400.0
"""As good as none."""


def steps_of(request: AskRequest) -> int:
    """How many steps at most."""
    return request.steps or (DEEP_STEPS if request.deep else 1)


def budget_of(request: AskRequest) -> Budget:
    """Four calls a step, and no fewer than for three steps, where the client sets no limit. One step has none of time: how
    long a model may be silent is the client's timeout."""
    default = Budget() if request.deep or request.steps is not None else Budget(seconds=NO_LIMIT_S)
    return Budget(
        calls=request.max_calls or CALLS_A_STEP * max(steps_of(request), DEEP_STEPS),
        tokens=request.max_tokens or default.tokens,
        seconds=request.timeout_s or default.seconds,
    )


def why_ended(stopped: str, budget: Budget, steps: int, error: str | None) -> str | None:
    """A sentence for the user where steps ended early for a reason outside the question; else None."""
    after = f"after {steps} {'step' if steps == 1 else 'steps'}"
    match stopped:
        case "calls":
            return f"ended {after}: no more than {budget.calls:,} calls to the model were allowed"
        case "tokens":
            return f"ended {after}: no more than {budget.tokens:,} tokens were allowed"
        case "seconds":
            return f"ended {after}: no more than {budget.seconds:g} s were allowed"
        case "model":
            return f"ended {after}: {error}"
    return None
