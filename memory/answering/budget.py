"""The budget of a question with several steps, and its spending so far. A part of each limit is reserved for the answer."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from memory.llm.chat_completion import prompt_tokens
from memory.llm.client import ChatMessage

ANSWER_SHARE = 0.2
"""Share of the tokens and of the seconds that is reserved for the answer."""
ANSWER_TOKENS = 500
"""Completion tokens reserved for the answer."""

BudgetLimit = Literal["calls", "tokens", "seconds"]
PassageT = TypeVar("PassageT")


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum cost of a question. The steps end when the first limit is reached; one call is reserved for the answer."""

    calls: int = 12
    """Maximum number of requests to the model, including retries except those after a 429."""
    tokens: int = 100_000
    """Maximum number of prompt and completion tokens. Estimated at three characters per token if the server does not count
    them."""
    seconds: float = 300.0
    """Maximum number of seconds from question to answer."""


class BudgetReached(Exception):
    """A limit of the budget is reached. The message is for the user."""

    def __init__(self, limit: BudgetLimit, message: str) -> None:
        super().__init__(message)
        self.limit: BudgetLimit = limit


class Spending:
    """The cost of one question so far, compared with its budget. Time is counted from the object's creation. Used on one event
    loop."""

    def __init__(self, budget: Budget, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget
        self.calls = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.model_seconds = 0.0
        """Seconds spent waiting for the model."""
        self._clock = clock
        self._began = clock()

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def tokens_left(self) -> int:
        return max(self.budget.tokens - self.tokens, 0)

    def seconds_left(self, final: bool) -> float:
        """Returns the seconds until the answer is due (`final`) or until the steps must end; negative afterwards."""
        return self.budget.seconds * (1.0 if final else 1.0 - ANSWER_SHARE) - self.seconds

    def charge(self, calls: int, prompt_tokens: int, completion_tokens: int) -> None:
        self.calls += calls
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens

    def reached(self, calls: int = 1) -> BudgetLimit | None:
        """Returns the limit that `calls` more calls and the answer's call would exceed; None if they fit."""
        if self.calls + calls + 1 > self.budget.calls:
            return "calls"
        if self.tokens >= self.budget.tokens:
            return "tokens"
        return "seconds" if self.seconds_left(final=False) <= 0 else None

    def has_tokens_for(self, prompt: Sequence[ChatMessage] = (), answer_prompt: Sequence[ChatMessage] = ()) -> bool:
        """Whether a step may send `prompt` and still leave enough tokens for the answer: the reserved share, or more if
        `answer_prompt` needs more."""
        reserve = max(ANSWER_SHARE * self.budget.tokens, prompt_tokens(answer_prompt) + ANSWER_TOKENS)
        return self.tokens + prompt_tokens(prompt) + reserve <= self.budget.tokens

    def require_call(self, prompt: Sequence[ChatMessage], final: bool) -> float:
        """Returns the maximum number of seconds for a call with `prompt`. `final`: the call writes the answer.

        Raises BudgetReached if the call would exceed a limit.
        """
        share = 1.0 if final else 1.0 - ANSWER_SHARE
        if self.tokens + prompt_tokens(prompt) > self.budget.tokens * share:
            raise BudgetReached("tokens", f"the budget of {self.budget.tokens:,} tokens is used up")
        left = self.require_seconds(final)
        self._require_request(final)
        return left

    def take_request(self, final: bool) -> None:
        """Counts one request to the model, for the answer if `final`. Raises BudgetReached if none is left for this purpose."""
        self._require_request(final)
        self.calls += 1

    def require_seconds(self, final: bool) -> float:
        """Returns `seconds_left`. Raises BudgetReached if no time is left."""
        left = self.seconds_left(final)
        if left <= 0:
            raise self.out_of_time()
        return left

    def out_of_time(self) -> BudgetReached:
        return BudgetReached("seconds", f"the time of {self.budget.seconds:g} s is used up")

    def _require_request(self, final: bool) -> None:
        if self.calls >= self.budget.calls - (not final):
            raise BudgetReached("calls", f"the budget of {self.budget.calls} model calls is used up")


def fit_passages(
    passages: Sequence[PassageT], prompt_of: Callable[[tuple[PassageT, ...]], Sequence[ChatMessage]], spending: Spending
) -> tuple[PassageT, ...]:
    """Returns the first passages that fit into the answer's prompt with the remaining tokens."""
    limit = spending.tokens_left - ANSWER_TOKENS
    fitting = tuple(passages)
    while fitting and prompt_tokens(prompt_of(fitting)) > limit:
        fitting = fitting[:-1]
    return fitting


def halved(passages: Sequence[PassageT]) -> tuple[PassageT, ...]:
    """Returns the better half of the passages, after a model refused the prompt as too long."""
    return tuple(passages[: (len(passages) + 1) // 2])
