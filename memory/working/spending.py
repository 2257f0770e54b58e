"""What a deep question has cost so far, and whether the next call fits. The answer's call is kept in reserve."""

import time
from collections.abc import Callable, Iterable, Sequence

from memory.llm.errors import BadAnswer, ModelError, ModelRefused
from memory.working.types import Budget, Message, Stopped

STEPS_SHARE = 0.8
"""Of tokens and seconds that the steps may use; the rest is the answer's."""
ANSWER_TOKENS = 500
"""Room that is left for the answer itself."""
CHARS_A_TOKEN = 3
"""Where the server does not count: on the safe side for most scripts."""


class Reached(Exception):
    """A budget is reached. The message is for the user."""

    def __init__(self, which: Stopped, message: str) -> None:
        super().__init__(message)
        self.which: Stopped = which


class Spending:
    """One deep question's account. On one event loop."""

    def __init__(self, budget: Budget, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget
        self.requests = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.waited = 0.0
        """Seconds spent waiting for the model."""
        self.clock = clock
        self.began = clock()

    @property
    def seconds(self) -> float:
        return self.clock() - self.began

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def take(self, final: bool) -> None:
        """Counts one request to the model, or raises Reached when only the answer's is left."""
        if self.requests >= self.budget.calls - (not final):
            raise Reached("calls", f"the budget of {self.budget.calls} model calls is used up")
        self.requests += 1

    def room(self, messages: Sequence[Message], final: bool) -> float:
        """Seconds that a call with these messages may take; raises Reached where it does not fit."""
        share = 1.0 if final else STEPS_SHARE
        if self.tokens + estimate(messages) > self.budget.tokens * share:
            raise Reached("tokens", f"the budget of {self.budget.tokens:,} tokens is used up")
        left = self.seconds_left(final)
        if self.requests >= self.budget.calls - (not final):
            raise Reached("calls", f"the budget of {self.budget.calls} model calls is used up")
        return left

    def seconds_left(self, final: bool) -> float:
        """Raises Reached where there are none."""
        left = self.budget.seconds * (1.0 if final else STEPS_SHARE) - self.seconds
        if left <= 0:
            raise self.late()
        return left

    def tokens_left(self) -> int:
        return max(self.budget.tokens - self.tokens, 0)

    def late(self) -> Reached:
        return Reached("seconds", f"the time of {self.budget.seconds:g} s is used up")


def estimate(messages: Sequence[Message]) -> int:
    """Tokens of some messages, about."""
    return tokens_of(message.content for message in messages)


def tokens_of(texts: Iterable[str]) -> int:
    """Tokens of some texts together, about."""
    return sum(map(len, texts)) // CHARS_A_TOKEN


def wasted(error: ModelError, prompt: int, most: int) -> tuple[int, int]:
    """Prompt and completion tokens of a call that failed: as the server counted them, else about.

    An answer that is of no use was paid for; one that is of no use because it was cut off is refused as too long, and took the
    `most` that it was allowed.
    """
    if error.prompt_tokens or error.completion_tokens:
        return error.prompt_tokens, error.completion_tokens
    cut = isinstance(error, ModelRefused) and isinstance(error.__context__, BadAnswer)
    return (prompt if cut or isinstance(error, BadAnswer) else 0, most if cut else 0)
