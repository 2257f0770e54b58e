"""The one error of a configuration."""

from collections.abc import Sequence


class ConfigError(Exception):
    """The configuration cannot be used. `problems` has one sentence for each thing to put right, at least one."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(_one_line(problem) for problem in problems)
        super().__init__("\n".join(self.problems))


def _one_line(text: str) -> str:
    """Without control characters and what no terminal can show: values and names come from outside."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
