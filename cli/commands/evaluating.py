"""eval: how well the memory retrieves, measured with questions whose answers are known."""

from pathlib import Path
from typing import Any

import click

from cli.commands.asking import MODES, patience, several_steps, wanted
from cli.commands.documents import all_documents
from cli.output import progress
from cli.session import Session, json_option, pass_session
from cli.settings import settings_option
from daemon.contract import Answerer, AskResponse, Mode, QueryResponse, RankedPassage, Route
from daemon.contract.requests import K_MAX

SHOW_MOST = 10_000
"""Passages of one document that are looked at."""
ITERATIVE_STEPS = 3
"""Steps of `--answerer iterative`, as many as `deep` makes by default."""
LOOK_BACK_S = 300.0
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
    known = [mode.value for mode in Mode]
    for mode in modes:
        if mode not in known:
            raise click.BadParameter(f"{mode!r} is no mode; there are {', '.join(known)}", context, parameter)
    return list(dict.fromkeys(modes))


@click.command(name="eval")
@click.argument("questions", metavar="QUESTIONS", type=click.Path(path_type=Path))
@click.option("--mode", type=MODES, help="How passages are found; the configured way by default.")
@click.option("--k", "ks", default="2,5,10", show_default=True, callback=_ks, help="Ranks to measure at.")
@click.option("--compare", "modes", metavar="MODE,…", callback=_modes, help="Measure several modes, side by side.")
@click.option("--answers", is_flag=True, help="Have the model answer too: exact match and F1. Needs a model.")
@click.option(
    "--answerer",
    type=click.Choice([each.value for each in Answerer]),
    help="Who answers, as `ask` does: single, iterative (--steps), or deep (--deep). Means --answers.",
)
@several_steps
@click.option(
    "--continual",
    "count",
    type=click.IntRange(2, 100),
    metavar="N",
    help="Cut the memory into N segments as they came; measure the first one's questions after each.",
)
@settings_option
@json_option
@pass_session
def evaluate(
    session: Session,
    /,
    questions: Path,
    mode: str | None,
    ks: list[int],
    modes: list[str],
    answers: bool,
    count: int | None,
    settings: dict[str, Any],
    answerer: str | None,
    **steps: Any,
) -> None:
    """Measure recall with a file of QUESTIONS whose supporting passages or documents are known.

    Reads HippoRAG's formats (gold: supporting paragraphs) and {"question", "documents": [paths]}. Recall@k is the share of
    gold found among the first k passages, all@k the share of questions with all of it; times are the daemon's own, with
    one query at a time; with --compare they leave out encoding the question, which the daemon then remembers.
    """
    how = _how(answerer, steps)
    answers = answers or answerer is not None
    if answers and (mode or modes or settings):
        raise click.UsageError("--answers is for what is configured: leave --mode, --compare and settings out.")
    if mode and modes:
        raise click.UsageError("--mode and --compare exclude each other.")
    if count is not None:
        if modes or answers:
            raise click.UsageError("--continual measures one mode: leave --compare and --answers out.")
        _continual(session, questions, ks, {"mode": mode, "settings": settings}, count)
        return
    from cli.client import read
    from cli.questions import read_questions
    from cli.render.evaluation import evaluation
    from cli.scoring import evaluate as score
    from cli.scoring import evaluate_answers

    asked = read_questions(questions)
    chosen: list[str | None] = [*modes] if modes else [mode]
    rounds = len(chosen) + (len(chosen) > 1) + answers
    with session.client() as client, progress("evaluating", len(asked) * rounds) as shown:

        def ask(text: str, mode: str | None) -> QueryResponse:
            body: dict[str, Any] = {"query": text, "k": max(ks)} | ({"mode": mode} if mode else {})
            body |= {"settings": settings} if settings else {}
            answer = read(QueryResponse, client.call("POST", Route.QUERY, body))
            shown.advance()
            return answer

        def reply(text: str) -> AskResponse:
            body = {"question": text, **how}
            said = read(AskResponse, client.call("POST", Route.ASK, body, timeout_s=patience(steps)))
            shown.advance()
            return said

        results = score(asked, ks, ask, chosen)
        if answers:
            results = [results[0].model_copy(update={"answers": evaluate_answers(asked, reply)})]
    documents = [result.model_dump(mode="json") for result in results]
    whole = {"n": len(asked), "modes": documents} if modes else documents[0]
    session.emit(whole, lambda: evaluation(results), wrap=False)


def _how(answerer: str | None, steps: dict[str, Any]) -> dict[str, Any]:
    """How each question is asked, as fields of the request."""
    if answerer is None:
        if given := [name for name, value in steps.items() if value]:
            raise click.UsageError(f"--{given[0].replace('_', '-')} is for --answerer deep or iterative.")
        return {}
    chosen = {**steps, "deep": answerer == Answerer.DEEP}
    if answerer == Answerer.SINGLE and chosen["steps"] is not None:
        raise click.UsageError("--steps is for --answerer deep or iterative.")
    if answerer == Answerer.ITERATIVE and chosen["steps"] is None:
        chosen["steps"] = ITERATIVE_STEPS
    return wanted(chosen)


def _continual(session: Session, path: Path, ks: list[int], chosen: dict[str, Any], count: int) -> None:
    """Asks the memory as of each segment's end."""
    from cli.client import read
    from cli.continual import of_first, segments
    from cli.questions import read_questions
    from cli.render.continual import continual
    from cli.scoring import evaluate as score
    from daemon.contract import ShowDocument, document_path

    asked = read_questions(path)
    with session.client() as client, progress("evaluating") as shown:

        def look(uri: str) -> list[RankedPassage]:
            shown.advance()
            document = read(ShowDocument, client.call("GET", document_path(uri), params={"limit": SHOW_MOST}))
            title = document.document.title
            return [
                RankedPassage(
                    rank=1, score=0.0, id=each.id, title=each.title or title, text=each.text, document=uri, location={}
                )
                for each in document.passages
            ]

        documents = all_documents(client)
        cut = segments(documents, count)
        questions = of_first(asked, documents, cut[0], look)
        measured = []
        for segment in cut:
            fixed = {"k": max(ks), "as_of": segment.as_of, **chosen}
            body = {key: value for key, value in fixed.items() if value}

            def ask(text: str, _: str | None, body: dict[str, Any] = body) -> QueryResponse:
                shown.advance()
                return read(
                    QueryResponse, client.call("POST", Route.QUERY, body | {"query": text}, timeout_s=LOOK_BACK_S)
                )

            measured.append((segment, score(questions, ks, ask, [chosen["mode"]])[0]))
    rows = [
        {"segment": segment.number, "documents": segment.documents, "passages": segment.passages}
        | {key: value for key, value in result.model_dump(mode="json").items() if key in ("recall", "all", "took_ms")}
        for segment, result in measured
    ]
    whole = measured[-1][1].model_dump(mode="json") | {"segments": rows}
    session.emit(whole, lambda: continual(measured, len(asked)), wrap=False)
