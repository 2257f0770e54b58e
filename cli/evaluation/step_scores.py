"""Scores of the answers after each step of a deep question, as in the paper's curves."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from cli.evaluation.questions import EvalQuestion
from cli.evaluation.scoring import compared, mean, means, recall_by_k
from daemon.contract.answering.ask import AskResponse, RetrievedPassage
from daemon.contract.evaluation import StepScores


def step_scores(ks: Sequence[int], question: EvalQuestion, answer: AskResponse) -> list[StepScores]:
    """Returns the scores of each step that was made. The last step's answer is the answer itself."""
    found, calls = [], 0
    for at, step in enumerate(answer.steps):
        calls += sum(
            map(_requests, [step.get("judged"), *step.get("worded", ()), step.get("evolved"), step.get("merged")])
        )
        is_last = at == len(answer.steps) - 1
        written: dict[str, Any] = step.get("answer") or {}
        if is_last:
            short, passages, own = answer.short, answer.passages, answer.answered or []
        else:
            short = written.get("short", "")
            passages = [RetrievedPassage.model_validate(each) for each in written.get("passages", ())]
            own = written.get("calls", [])
        scores = compared(question, short)
        found.append(
            StepScores(
                step=step.get("number", at),
                em=scores.get("em"),
                f1=scores.get("f1"),
                accuracy=float(scores["correct"]) if "correct" in scores else None,
                recall=recall_by_k(ks, question, passages) if question.gold else {},
                calls=calls + sum(map(_requests, own)),
            )
        )
    return found


def mean_steps(questions: Sequence[Sequence[StepScores]]) -> list[StepScores]:
    """Returns means over the questions, up to the last step that any question made. Each question counts in every step."""
    found = []
    for at in range(max(map(len, questions), default=0)):
        steps = [each[min(at, len(each) - 1)] for each in questions]
        found.append(
            StepScores(
                step=max(step.step for step in steps),
                em=mean([step.em for step in steps]),
                f1=mean([step.f1 for step in steps]),
                accuracy=mean([step.accuracy for step in steps]),
                recall=means([step.recall for step in steps if step.recall]),
                calls=round(fmean(step.calls for step in steps), 4),
            )
        )
    return found


def _requests(call: dict[str, Any] | None) -> int:
    return int(call.get("requests", 0)) if call else 0
