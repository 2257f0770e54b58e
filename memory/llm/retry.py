"""The retry policy of calls to the model server: how often a failed try is repeated, and after how long.

Requests for embeddings leave this to OpenAI's client (`memory.encoder.openai`): they need no more than it does. Calls for
answers need three counters that it does not have.
"""

import random
from dataclasses import dataclass

from memory.llm.error_classification import TransientError

BAD_ANSWER_RETRIES = 2
"""How often an answer of no use is asked for again: a model at temperature 0 seldom answers differently."""
MAX_RATE_LIMITED_TRIES = 30
"""How often in a row a call may be refused with 429 before that counts as an outage."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0


@dataclass(slots=True)
class ModelCallRetries:
    """Counts the tries of one call. `limit` is how often a failure is tried again; 429 has a limit of its own."""

    limit: int
    failed: int = 0
    """Tries that ended without an answer, but for 429."""
    unanswered: int = 0
    """Of those, the tries in which the server took no call at all."""
    rate_limited: int = 0
    bad_answers: int = 0

    def pause_after(self, error: TransientError) -> float | None:
        """Seconds to wait before the next try; None where there is none.

        What the server asked for and up to a tenth more; else exponential backoff, the second half of it random.
        """
        self.rate_limited += error.rate_limited
        self.failed += not error.rate_limited
        self.unanswered += error.unavailable
        if self.failed > self.limit or self.rate_limited > (MAX_RATE_LIMITED_TRIES if self.limit else 0):
            return None
        if error.retry_after_s is not None:
            return error.retry_after_s * (1 + 0.1 * random.random())
        doublings = max(self.failed, 1) - 1
        return min(FIRST_PAUSE_S * 2.0**doublings, LONGEST_PAUSE_S) * (0.5 + 0.5 * random.random())

    def again_after_bad_answer(self) -> bool:
        """Whether an answer of no use is worth asking for again."""
        self.bad_answers += 1
        return self.bad_answers <= min(BAD_ANSWER_RETRIES, self.limit)
