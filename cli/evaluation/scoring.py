"""Recall over questions, asked one after the other so that the times are those of one query alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, quantiles

from cli.errors import CommandError, Exit
from cli.evaluation.answer_scores import exact, f1
from cli.evaluation.questions import EvalQuestion
from daemon.contract.ask import AskResponse
from daemon.contract.evaluation import AnswerScores, EvalResponse, FilterStatistics, Percentiles, QuestionScore
from daemon.contract.query import QueryResponse

AskQuestion = Callable[[str, str | None], QueryResponse]
"""Asks a question in a mode (`None`: the configured one)."""


@dataclass
class _Tally:
    """What one mode has found so far."""

    mode: str | None
    recalls: dict[int, list[float]]
    times: list[float] = field(default_factory=list)
    linked: list[tuple[int, int]] = field(default_factory=list)
    """How many triples each query was linked to, and how many recognition memory kept."""
    unfiltered: int = 0

    def add(self, question: EvalQuestion, answer: QueryResponse) -> None:
        self.mode = answer.mode
        self.times.append(answer.took_ms)
        if answer.note is not None and answer.note.startswith("unfiltered"):
            self.unfiltered += 1
        elif answer.triples:
            self.linked.append((len(answer.triples), sum(triple.kept for triple in answer.triples)))
        for k, shares in self.recalls.items():
            shares.append(question.found(answer.passages[:k]) / question.gold)

    def result(self) -> EvalResponse:
        return EvalResponse(
            n=len(self.times),
            recall={str(k): round(fmean(shares), 4) for k, shares in self.recalls.items()},
            all={str(k): round(fmean(share == 1 for share in shares), 4) for k, shares in self.recalls.items()},
            took_ms=percentiles(self.times),
            mode=self.mode,
            filter=self._filter(),
        )

    def _filter(self) -> FilterStatistics | None:
        """None where the filter removed no triple and never failed."""
        offered, kept = (sum(part) for part in zip(*self.linked, strict=True)) if self.linked else (0, 0)
        if offered == kept and not self.unfiltered:
            return None
        emptied = sum(not left for _, left in self.linked)
        share = round(kept / offered, 4) if offered else 0.0
        return FilterStatistics(queries=len(self.linked), kept=share, emptied=emptied, unfiltered=self.unfiltered)


def evaluate_retrieval(
    questions: Sequence[EvalQuestion], ks: Sequence[int], ask: AskQuestion, modes: Sequence[str | None]
) -> list[EvalResponse]:
    """Recall@k (share of gold found, mean over questions), share of questions with all gold, and the daemon's times.

    The daemon remembers the vectors of its last queries. Where modes are compared, each question is therefore asked once
    more before it counts: else the mode that happens to be first would pay for encoding it, and the others not.
    """
    tallies = [_Tally(mode, {k: [] for k in ks}) for mode in modes]
    for question in questions:
        if len(modes) > 1:
            ask(question.text, modes[0])
        for mode, tally in zip(modes, tallies, strict=True):
            tally.add(question, ask(question.text, mode))
    return [tally.result() for tally in tallies]


def evaluate_answers(questions: Sequence[EvalQuestion], ask: Callable[[str], AskResponse]) -> AnswerScores:
    """Exact match and token F1 of the short answers, over the questions whose answers are known, and what they took.

    A question that the daemon cannot answer (the model fails) counts as 0, and is listed with the reason; where none is
    answered the last reason is raised.
    """
    known = [question for question in questions if question.answers]
    if not known:
        raise CommandError("none of the questions has an `answer` to compare with.")
    scores = []
    answerer, failure = None, None
    for question in known:
        try:
            answer = ask(question.text)
        except CommandError as error:
            if error.code is not Exit.FAILED or error.problem is None:
                raise
            scores.append(_failed_question(question, error))
            failure = error
            continue
        answerer = answer.answerer
        scores.append(_score_question(question, answer))
    if answerer is None:
        assert failure is not None
        raise failure
    points = [score.entities_a_point for score in scores if score.entities_a_point is not None]
    answered = [score for score in scores if score.error is None]
    return AnswerScores(
        n=len(known),
        em=round(fmean(score.em for score in scores), 4),
        f1=round(fmean(score.f1 for score in scores), 4),
        prompt_tokens=sum(score.prompt_tokens for score in scores),
        completion_tokens=sum(score.completion_tokens for score in scores),
        answerer=answerer,
        failed=len(scores) - len(answered),
        calls=round(fmean(score.calls for score in answered), 4),
        took_ms=percentiles([score.took_ms for score in answered]),
        entities_a_point=round(fmean(points), 4) if points else None,
        questions=scores,
    )


def _score_question(question: EvalQuestion, answer: AskResponse) -> QuestionScore:
    return QuestionScore(
        question=question.text,
        short=answer.short,
        em=exact(answer.short, question.answers),
        f1=round(f1(answer.short, question.answers), 6),
        prompt_tokens=answer.tokens.prompt,
        completion_tokens=answer.tokens.completion,
        calls=answer.calls,
        took_ms=answer.took_ms,
        entities_a_point=answer.entities_a_point,
        note=answer.note,
    )


def _failed_question(question: EvalQuestion, error: CommandError) -> QuestionScore:
    return QuestionScore(
        question=question.text,
        short="",
        em=0.0,
        f1=0.0,
        prompt_tokens=0,
        completion_tokens=0,
        calls=0,
        took_ms=0.0,
        error=error.message,
    )


def percentiles(times: Sequence[float]) -> Percentiles:
    """p50 and p95 by linear interpolation between the nearest two."""
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else [times[0]] * 19
    return Percentiles(p50=round(cuts[9], 3), p95=round(cuts[18], 3))
