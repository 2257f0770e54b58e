"""Text about the steps without the model: why they ended, and an answer from thoughts or titles."""

from collections.abc import Sequence

from memory.answering.budget import Budget
from memory.answering.iterative.steps import IterativeResult
from memory.types import Hit


def passage_titles(passages: Sequence[Hit]) -> str:
    """Returns the titles of the passages, numbered as [n]."""
    return "; ".join(f"{hit.title or hit.id} [{at}]" for at, hit in enumerate(passages, 1))


def answer_from_thoughts(result: IterativeResult) -> tuple[str, tuple[Hit, ...]]:
    """Returns the thoughts as an answer, each with its passages as [n], and the cited passages in order of their numbers.

    The answer is "" if there is no thought.
    """
    known = {hit.id: hit for step in result.steps for hit in step.found}
    cited: dict[str, int] = {}
    said = []
    for thought in result.thoughts:
        numbers = sorted(cited.setdefault(id, len(cited) + 1) for id in thought.sources if id in known)
        said.append(thought.text + "".join(f" [{n}]" for n in numbers))
    return " ".join(said), tuple(known[id] for id in cited)


def end_note(result: IterativeResult, budget: Budget) -> str | None:
    """Returns a sentence for the user if the steps ended early for a reason outside the question, otherwise None."""
    steps = len(result.steps)
    after = f"after {steps} {'step' if steps == 1 else 'steps'}"
    match result.stopped:
        case "calls":
            return f"ended {after}: no more than {budget.calls:,} calls to the model were allowed"
        case "tokens":
            return f"ended {after}: no more than {budget.tokens:,} tokens were allowed"
        case "seconds":
            return f"ended {after}: no more than {budget.seconds:g} s were allowed"
        case "model":
            return f"ended {after}: {result.error}"
    return None
