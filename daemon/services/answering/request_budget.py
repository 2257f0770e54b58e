"""Derives the maximum steps, the budget, and the form of the answer from a request."""

from dataclasses import replace

from daemon.contract.answering.ask import AskRequest
from daemon.contract.choices import NO_RETRIEVAL
from memory.answering.answer_form import AnswerForm
from memory.answering.budget import Budget
from memory.answering.working_memory.trace import DEEP_CALLS_PER_STEP, DEEP_TOKENS, DeepSettings

DEEP_STEPS = DeepSettings().steps
QUICK_CALLS_PER_STEP = 4
"""Calls per step of iterative questions, and of `quick` deep questions, in which one call yields judgement, concerns and
subqueries. Other deep questions: `DEEP_CALLS_PER_STEP`."""
ITERATIVE_STEPS = Budget().calls // QUICK_CALLS_PER_STEP
UNLIMITED_S = 7 * 86400.0
"""Practically unlimited."""


def steps_of(request: AskRequest) -> int:
    """Returns the maximum number of steps."""
    return request.steps or (DEEP_STEPS if request.deep else 1)


def budget_of(request: AskRequest) -> Budget:
    """Returns the request's budget. Uses defaults for limits that the client does not set.

    The default number of calls is proportional to the number of steps, but not lower than for the default number of steps. A
    question of one step has no time limit, because the client's timeout limits how long the model may be silent.
    """
    default = Budget() if request.deep or request.steps is not None else Budget(seconds=UNLIMITED_S)
    if request.deep:
        default = replace(default, tokens=DEEP_TOKENS)
    return Budget(
        calls=request.max_calls or _calls(request),
        tokens=request.max_tokens or default.tokens,
        seconds=request.timeout_s or default.seconds,
    )


def _calls(request: AskRequest) -> int:
    if not request.deep:
        return QUICK_CALLS_PER_STEP * max(steps_of(request), ITERATIVE_STEPS)
    # Add step 0, which retrieves for the question itself. With `each_step`, each step needs another call, which writes the
    # answer.
    retrievals = max(steps_of(request), DEEP_STEPS) + 1
    per_step = QUICK_CALLS_PER_STEP if request.quick else DEEP_CALLS_PER_STEP
    return (per_step + request.each_step) * retrievals


def answer_form_of(request: AskRequest) -> AnswerForm:
    return AnswerForm(
        request.length,
        request.reason,
        request.verify or request.consistent,
        request.mode == NO_RETRIEVAL,
        request.consistent,
    )
