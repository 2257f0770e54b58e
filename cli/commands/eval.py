"""eval: how well the memory retrieves, measured with questions whose answers are known."""

from pathlib import Path
from typing import Any

import click

from cli.commands.documents import all_documents
from cli.commands.query import answer_timeout_s, step_fields, step_options
from cli.global_options import Invocation, json_option, pass_invocation
from cli.output import progress
from cli.retrieval_options import mode_option, settings_option
from cli.scope_options import scope_options, scope_parameter
from daemon.contract.ask import AskResponse
from daemon.contract.choices import MODES, Answerer
from daemon.contract.http.routes import Route
from daemon.contract.limits import K_MAX
from daemon.contract.query import QueryResponse, RankedPassage

SHOWN_PASSAGES_LIMIT = 10_000
"""Passages of one document that are looked at."""
ITERATIVE_STEPS = 3
"""Steps of `--answerer iterative`, as many as `deep` makes by default."""
AS_OF_TIMEOUT_S = 300.0
"""How long the daemon may take to put an earlier memory together."""


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
    for mode in modes:
        if mode not in MODES:
            raise click.BadParameter(f"{mode!r} is no mode; there are {', '.join(MODES)}", context, parameter)
    return list(dict.fromkeys(modes))


@click.command(name="eval")
@click.argument("questions", metavar="QUESTIONS", type=click.Path(path_type=Path))
@mode_option
@click.option("--k", "ks", default="2,5,10", show_default=True, callback=_ks, help="Ranks to measure at.")
@click.option("--compare", "modes", metavar="MODE,…", callback=_modes, help="Measure several modes, side by side.")
@click.option("--answers", is_flag=True, help="Have the model answer too: exact match and F1. Needs a model.")
@click.option(
    "--answerer",
    type=click.Choice([each.value for each in Answerer]),
    help="Who answers, as `ask` does: single, iterative (--steps), or deep (--deep). Means --answers.",
)
@step_options
@click.option(
    "--continual",
    "count",
    type=click.IntRange(2, 100),
    metavar="N",
    help="Cut the memory into N segments as they came; measure the first one's questions after each.",
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
    ks: list[int],
    modes: list[str],
    answers: bool,
    count: int | None,
    settings: dict[str, Any],
    scope: dict[str, Any] | None,
    answerer: str | None,
    **steps: Any,
) -> None:
    """Measure recall with a file of QUESTIONS whose supporting passages or documents are known.

    Reads HippoRAG's formats (gold: supporting paragraphs) and {"question", "documents": [paths]}. Recall@k is the share of
    gold found among the first k passages, all@k the share of questions with all of it; times are the daemon's own, with
    one query at a time; with --compare they leave out encoding the question, which the daemon then remembers.
    """
    how = _settings_text(answerer, steps)
    answers = answers or answerer is not None
    if answers and (mode or modes or settings):
        raise click.UsageError("--answers is for what is configured: leave --mode, --compare and settings out.")
    if mode and modes:
        raise click.UsageError("--mode and --compare exclude each other.")
    if count is not None:
        if modes or answers:
            raise click.UsageError("--continual measures one mode: leave --compare and --answers out.")
        _continual(invocation, questions, ks, {"mode": mode, "settings": settings, "scope": scope}, count)
        return
    from cli.client.typed_answers import parse_answer
    from cli.evaluation.questions import read_questions
    from cli.evaluation.scoring import evaluate_answers, evaluate_retrieval
    from cli.render.evaluation import evaluation_lines

    loaded_questions = read_questions(questions)
    chosen: list[str | None] = [*modes] if modes else [mode]
    rounds = len(chosen) + (len(chosen) > 1) + answers
    with invocation.client() as client, progress("evaluating", len(loaded_questions) * rounds, counted=True) as shown:

        def ask(text: str, mode: str | None) -> QueryResponse:
            body: dict[str, Any] = {"query": text, "k": max(ks)} | ({"mode": mode} if mode else {})
            body |= {"settings": settings} if settings else {}
            body |= {"scope": scope} if scope else {}
            answer = parse_answer(QueryResponse, client.call("POST", Route.QUERY, body))
            shown.advance()
            return answer

        def reply(text: str) -> AskResponse:
            body = {"question": text, **how, **({"scope": scope} if scope else {})}
            answer = parse_answer(AskResponse, client.call("POST", Route.ASK, body, timeout_s=answer_timeout_s(steps)))
            shown.advance()
            return answer

        results = evaluate_retrieval(loaded_questions, ks, ask, chosen)
        if answers:
            results = [results[0].model_copy(update={"answers": evaluate_answers(loaded_questions, reply)})]
    documents = [result.model_dump(mode="json") for result in results]
    whole = {"n": len(loaded_questions), "modes": documents} if modes else documents[0]
    invocation.emit(whole, lambda: evaluation_lines(results), wrap=False)


def _settings_text(answerer: str | None, steps: dict[str, Any]) -> dict[str, Any]:
    """How each question is asked, as fields of the request."""
    if answerer is None:
        if unused := [name for name, value in steps.items() if value]:
            raise click.UsageError(f"--{unused[0].replace('_', '-')} is for --answerer deep or iterative.")
        return {}
    chosen = {**steps, "deep": answerer == Answerer.DEEP}
    if answerer == Answerer.SINGLE and chosen["steps"] is not None:
        raise click.UsageError("--steps is for --answerer deep or iterative.")
    if answerer == Answerer.ITERATIVE and chosen["steps"] is None:
        chosen["steps"] = ITERATIVE_STEPS
    return step_fields(chosen)


def _continual(invocation: Invocation, path: Path, ks: list[int], chosen: dict[str, Any], count: int) -> None:
    """Asks the memory as of each segment's end."""
    from cli.client.typed_answers import parse_answer
    from cli.evaluation.continual import first_questions, segments
    from cli.evaluation.questions import read_questions
    from cli.evaluation.scoring import evaluate_retrieval
    from cli.render.continual import continual_lines
    from daemon.contract.http.routes import document_path
    from daemon.contract.show import ShowDocument

    loaded_questions = read_questions(path)
    with invocation.client() as client, progress("evaluating") as shown:

        def look(uri: str) -> list[RankedPassage]:
            shown.advance()
            document = parse_answer(
                ShowDocument, client.call("GET", document_path(uri), params={"limit": SHOWN_PASSAGES_LIMIT})
            )
            title = document.document.title
            return [
                RankedPassage(
                    rank=1, score=0.0, id=each.id, title=each.title or title, text=each.text, document=uri, location={}
                )
                for each in document.passages
            ]

        documents = all_documents(client, scope_parameter(chosen["scope"]))
        parts = segments(documents, count)
        questions = first_questions(loaded_questions, documents, parts[0], look)
        measured = []
        for segment in parts:
            fixed = {"k": max(ks), "as_of": segment.as_of, **chosen}
            body = {key: value for key, value in fixed.items() if value}

            def ask(text: str, _: str | None, body: dict[str, Any] = body) -> QueryResponse:
                shown.advance()
                return parse_answer(
                    QueryResponse, client.call("POST", Route.QUERY, body | {"query": text}, timeout_s=AS_OF_TIMEOUT_S)
                )

            measured.append((segment, evaluate_retrieval(questions, ks, ask, [chosen["mode"]])[0]))
    rows = [
        {"segment": segment.number, "documents": segment.documents, "passages": segment.passages}
        | {key: value for key, value in result.model_dump(mode="json").items() if key in ("recall", "all", "took_ms")}
        for segment, result in measured
    ]
    whole = measured[-1][1].model_dump(mode="json") | {"segments": rows}
    invocation.emit(whole, lambda: continual_lines(measured, len(loaded_questions)), wrap=False)
