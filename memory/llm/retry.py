"""The retry policy of calls to the model server: the number of retries, and the pauses before them.

Embedding requests use the retries of OpenAI's client (`memory.encoder.openai`). Chat calls need three counters that OpenAI's
client lacks.
"""

import random
from dataclasses import dataclass

from memory.llm.error_classification import TransientError

BAD_ANSWER_RETRIES = 2
"""Number of retries after an unusable answer; a model at temperature 0 seldom answers differently."""
MAX_RATE_LIMITED_TRIES = 30
"""Number of 429 refusals of one call that count as an outage."""
FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 30.0


@dataclass(slots=True)
class ModelCallRetries:
    """Counts the tries of one call. `limit` is the number of retries after failures; refusals with 429 have a separate
    limit."""

    limit: int
    failed: int = 0
    """Number of failed tries, not counting refusals with 429."""
    unanswered: int = 0
    """Number of tries in which the server did not accept the call."""
    rate_limited: int = 0
    bad_answers: int = 0

    def pause_after(self, error: TransientError) -> float | None:
        """Returns the seconds to wait before the next try; None if the call has failed.

        The wait is the server's stated wait plus up to a tenth; otherwise, it is an exponential backoff whose second half is
        random.
        """
        self.rate_limited += error.rate_limited
        self.failed += not error.rate_limited
        self.unanswered += error.unavailable
        if self.failed > self.limit or self.rate_limited > (MAX_RATE_LIMITED_TRIES if self.limit else 0):
            return None
        if error.retry_after_s is not None:
            return error.retry_after_s * (1 + 0.1 * random.random())
        doublings = max(self.failed, 1) - 1
        return min(FIRST_PAUSE_S * 2.0**doublings, MAX_PAUSE_S) * (0.5 + 0.5 * random.random())

    def again_after_bad_answer(self) -> bool:
        """Whether to retry after an unusable answer."""
        self.bad_answers += 1
        return self.bad_answers <= min(BAD_ANSWER_RETRIES, self.limit)
