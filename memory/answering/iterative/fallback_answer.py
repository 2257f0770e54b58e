"""What is said about the steps without the model: why they ended, and an answer made of thoughts or titles."""

from collections.abc import Sequence

from memory.answering.budget import Budget
from memory.answering.iterative.steps import IterativeResult
from memory.types import Hit


def passage_titles(passages: Sequence[Hit]) -> str:
    """The titles of the passages, numbered as [n]."""
    return "; ".join(f"{hit.title or hit.id} [{at}]" for at, hit in enumerate(passages, 1))


def answer_from_thoughts(result: IterativeResult) -> tuple[str, tuple[Hit, ...]]:
    """An answer without the model: the thoughts, each with the passages that it rests on as [n].

    "" where there is no thought. The passages are those cited, numbered from 1 in this order.
    """
    known = {hit.id: hit for step in result.steps for hit in step.found}
    cited: dict[str, int] = {}
    said = []
    for thought in result.thoughts:
        numbers = sorted(cited.setdefault(id, len(cited) + 1) for id in thought.sources if id in known)
        said.append(thought.text + "".join(f" [{n}]" for n in numbers))
    return " ".join(said), tuple(known[id] for id in cited)


def end_note(result: IterativeResult, budget: Budget) -> str | None:
    """A sentence for the user where the steps ended early for a reason outside the question; else None."""
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
