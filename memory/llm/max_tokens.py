"""How long an answer a server is asked for: its context must hold the prompt and all that the answer is allowed.

Found out by asking and remembered, as in `memory.llm.response_format`. What remains of a context is not worked out from the
refusal: servers word it each in their own way, and some count a part of the prompt only.
"""

from dataclasses import dataclass, field

REDUCED_MAX_TOKENS = 1024
"""Tokens that are asked for where a server refuses more: enough for what a passage of the default length says."""


@dataclass(slots=True)
class AnswerLengths:
    """What one server has taught. Prompts are compared by their characters."""

    _refused: dict[int, int] = field(default_factory=dict)
    """The shortest prompt beside which so many tokens of answer were refused."""

    def tokens_to_ask(self, prompt: int, wanted: int) -> int:
        """The tokens to ask for, where `wanted` are."""
        refused = self._refused.get(wanted)
        return wanted if refused is None or prompt < refused else min(wanted, REDUCED_MAX_TOKENS)

    def reduce(self, prompt: int, wanted: int, asked: int) -> bool:
        """Takes note that `asked` tokens were refused as too long; whether it is worth asking for fewer."""
        if asked <= REDUCED_MAX_TOKENS:
            return False
        self._refused[wanted] = min(prompt, self._refused.get(wanted, prompt))
        return True
