"""How many tokens of answer a server is asked for: its context must hold the prompt and all of them.

Found out by asking and remembered, as in `memory.llm.response_format`. What remains of a context is not worked out from the
refusal: servers word it each in their own way, and some count a part of the prompt only.
"""

from dataclasses import dataclass, field

REDUCED_MAX_TOKENS = 1024
"""Tokens that are asked for where a server refuses more: enough for what a passage of the default length says."""


@dataclass(slots=True)
class AnswerLengths:
    """What one server's refusals have shown. Prompts are compared by their characters."""

    _refused: dict[int, int] = field(default_factory=dict)
    """The shortest prompt beside which so many tokens of answer were refused."""

    def tokens_to_ask(self, prompt_chars: int, wanted_tokens: int) -> int:
        """The tokens to ask for, where the caller wants `wanted_tokens`."""
        refused = self._refused.get(wanted_tokens)
        return wanted_tokens if refused is None or prompt_chars < refused else min(wanted_tokens, REDUCED_MAX_TOKENS)

    def reduce(self, prompt_chars: int, wanted_tokens: int, asked_tokens: int) -> bool:
        """Records that `asked_tokens` were refused as too long. Returns whether asking for fewer is worth a try."""
        if asked_tokens <= REDUCED_MAX_TOKENS:
            return False
        self._refused[wanted_tokens] = min(prompt_chars, self._refused.get(wanted_tokens, prompt_chars))
        return True
