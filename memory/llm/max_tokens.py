"""Learns how many answer tokens to request from a server, whose context must hold the prompt and the answer.

The result is learnt from requests and remembered, as in `memory.llm.response_format`. The remaining context is not computed
from a refusal, because servers word refusals differently, and some count only a part of the prompt.
"""

from dataclasses import dataclass, field

DEFAULT_MAX_TOKENS = 4096
"""Tokens of an answer if the caller names no other number."""
REDUCED_MAX_TOKENS = 1024
"""Tokens that are requested if a server refuses more; enough for the answer about a passage of the default length."""


@dataclass(slots=True)
class AnswerLengths:
    """Limits learnt from one server's refusals. Prompts are compared by their number of characters."""

    _refused: dict[int, int] = field(default_factory=dict)
    """For a number of answer tokens, the length of the shortest prompt with which it was refused."""

    def tokens_to_ask(self, prompt_chars: int, wanted_tokens: int) -> int:
        """Returns the tokens to request if the caller wants `wanted_tokens`."""
        refused = self._refused.get(wanted_tokens)
        return wanted_tokens if refused is None or prompt_chars < refused else min(wanted_tokens, REDUCED_MAX_TOKENS)

    def reduce(self, prompt_chars: int, wanted_tokens: int, asked_tokens: int) -> bool:
        """Records that `asked_tokens` were refused as too long. Returns whether a request for fewer tokens is worth a try."""
        if asked_tokens <= REDUCED_MAX_TOKENS:
            return False
        self._refused[wanted_tokens] = min(prompt_chars, self._refused.get(wanted_tokens, prompt_chars))
        return True
