"""eval: how well the memory retrieves and answers, measured with questions whose answers are known."""

from pathlib import Path
from typing import Any

import click

from cli.commands.documents import all_documents
from cli.commands.query import answer_timeout_s, form_options, retrieval_fields, step_fields, step_options
from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.options.retrieval_options import answer_mode_option, filter_option, settings_option
from cli.options.scope_options import scope_options, scope_parameter
from cli.output import progress
from daemon.contract.choices import MODES, NO_RETRIEVAL, Answerer
from daemon.contract.documents import DocumentEntry
from daemon.contract.limits import K_MAX

ITERATIVE_STEPS = 3
"""Steps of `--answerer iterative`, as many as `deep` makes by default."""


def _ks(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    try:
        ks = sorted({int(part) for part in value.split(",")})
    except ValueError:
        raise click.BadParameter("write numbers with commas between them, as in 2,5,10", context, parameter) from None
    if not all(1 <= k <= K_MAX for k in ks):
        raise click.BadParameter(f"each must be between 1 and {K_MAX}", context, parameter)
    return ks


def _modes(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str]:
    modes = [part.strip() for part in value.split(",")] if value else []
    known = [*MODES, NO_RETRIEVAL]
    for mode in modes:
        if mode not in known:
            raise click.BadParameter(f"{mode!r} is not a mode; the modes are {', '.join(known)}", context, parameter)
    return list(dict.fromkeys(modes))


@click.command(name="eval")
@click.argument("questions", metavar="QUESTIONS", type=click.Path(path_type=Path))
@answer_mode_option
@filter_option
@click.option("--k", "ks", default="2,5,10", show_default=True, callback=_ks, help="Ranks to measure at.")
@click.option(
    "--compare",
    "modes",
    metavar="MODE,…",
    callback=_modes,
    help="Measure several modes, and the difference of each to the first.",
)
@click.option("--answers", is_flag=True, help="Also let the model answer: exact match and F1.")
@click.option(
    "--judge",
    is_flag=True,
    help="Let the model judge the answers: comprehensiveness, diversity, correctness. Implies --answers.",
)
@click.option(
    "--answerer",
    type=click.Choice([each.value for each in Answerer]),
    help="How to answer, as in `ask`: single, iterative (--steps), or deep (--deep). Implies --answers.",
)
@click.option(
    "--read",
    type=click.IntRange(1, K_MAX),
    default=5,
    show_default=True,
    metavar="K",
    help="Number of passages for an answer (-k of `ask`).",
)
@form_options
@step_options
@click.option(
    "--continual",
    "count",
    type=click.IntRange(2, 100),
    metavar="N",
    help="Divide the memory into N segments by arrival; after each, ask the questions of the first.",
)
@settings_option
@scope_options
@json_option
@pass_invocation
def evaluate(
    invocation: Invocation,
    /,
    questions: Path,
    mode: str | None,
    filter_: str | None,
    ks: list[int],
    modes: list[str],
    answers: bool,
    judge: bool,
    count: int | None,
    settings: dict[str, Any],
    scope: dict[str, Any] | None,
    answerer: str | None,
    read: int,
    length: int | None,
    reason: bool,
    **steps: Any,
) -> None:
    """Measure recall (and, with --answers, exact match and F1) on a file of QUESTIONS with known answers.

    Reads the files of common data sets and {"question", "documents": [paths]} (docs/how-to/evaluation.md). Recall@k is the
    share of gold passages among the first k, all@k the share of questions with all of them there; with --steps, among the
    passages of all steps. Times are the daemon's, for one query at a time; with --compare they do not include encoding the
    question.
    """
    if mode and modes:
        raise click.UsageError("--mode and --compare exclude each other.")
    chosen: list[str | None] = [*modes] if modes else [mode]
    who = _answerer(answers or judge, answerer, steps)
    form = retrieval_fields({"length": length, "reason": reason})
    how = retrieval_fields({"filter_": filter_, "settings": settings, "scope": scope})
    _refuse_ineffective(who, chosen, how, form)
    from cli.evaluation.questions import GoldLocator, read_questions
    from cli.evaluation.requests import EvalRequests
    from cli.evaluation.run import Evaluation
    from cli.evaluation.run import evaluate as run
    from cli.render.evaluation import comparison_lines

    loaded_questions = read_questions(questions, judge)
    answering = _step_fields(who, steps) | form
    with invocation.client() as client, progress("evaluating") as shown:

        def requests(as_of: str | None = None) -> EvalRequests:
            retrieval = how | ({"as_of": as_of} if as_of is not None else {})
            return EvalRequests(client, max(ks), read, answer_timeout_s(steps), retrieval, answering, shown.advance)

        def evaluation(as_of: str | None = None) -> Evaluation:
            asked = requests(as_of)
            answer = asked.answer if who is not None else None
            return Evaluation(ks, asked.query, answer, who or Answerer.SINGLE, asked.judge if judge else None)

        def list_documents() -> list[DocumentEntry]:
            return all_documents(client, scope_parameter(scope))

        if count is None:
            locator = GoldLocator(
                requests().word_matches, lambda: [each.uri for each in list_documents() if each.passages]
            )
            found = run([*map(locator.locate, loaded_questions)], chosen, evaluation())
        else:
            from cli.evaluation.continual import documents_of, evaluate_growth

            documents = list_documents()
            growth = evaluate_growth(
                loaded_questions,
                chosen,
                documents,
                count,
                lambda segment: GoldLocator(
                    requests(segment.as_of).word_matches,
                    lambda: [each.uri for each in documents_of(segment, documents)],
                ),
                evaluation,
            )
    if count is not None:
        from cli.render.continual import continual_json, continual_lines

        invocation.emit(
            continual_json(growth, bool(modes)), lambda: continual_lines(growth, len(loaded_questions)), wrap=False
        )
        return
    whole = found.model_dump(mode="json")
    invocation.emit(whole if modes else whole["modes"][0], lambda: comparison_lines(found), wrap=False)


def _answerer(answers: bool, answerer: str | None, steps: dict[str, Any]) -> Answerer | None:
    """Who answers; None where only retrieval is measured."""
    if answerer is not None:
        return Answerer(answerer)
    if steps["steps"] is not None:
        return Answerer.ITERATIVE
    if unused := [name for name, value in steps.items() if value]:
        raise click.UsageError(f"--{unused[0].replace('_', '-')} is for --answerer deep or iterative.")
    return Answerer.SINGLE if answers else None


def _refuse_ineffective(
    who: Answerer | None, modes: list[str | None], how: dict[str, Any], form: dict[str, Any]
) -> None:
    """UsageError for what would have no effect."""
    if who is None and form:
        raise click.UsageError(f"--{next(iter(form))} is for --answers.")
    if NO_RETRIEVAL in modes and who is not Answerer.SINGLE:
        raise click.UsageError(f"the mode {NO_RETRIEVAL} is for --answers without steps: nothing is retrieved.")
    if modes == [NO_RETRIEVAL] and how:
        raise click.UsageError(f"--{next(iter(how))} has no effect without retrieval.")
    if who is Answerer.DEEP and (modes != [None] or how.keys() - {"scope"}):
        raise click.UsageError("deep answers retrieve in a way of their own: leave modes, --filter and --set out.")


def _step_fields(who: Answerer | None, steps: dict[str, Any]) -> dict[str, Any]:
    """How each question is asked, as fields of the request."""
    if who is None:
        return {}
    chosen = {**steps, "deep": who is Answerer.DEEP}
    if who is Answerer.SINGLE and chosen["steps"] is not None:
        raise click.UsageError("--steps is for --answerer deep or iterative.")
    if who is Answerer.ITERATIVE and chosen["steps"] is None:
        chosen["steps"] = ITERATIVE_STEPS
    return step_fields(chosen)
