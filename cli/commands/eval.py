"""eval: measures retrieval and answers with questions whose answers are known."""

import itertools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.commands.documents import all_documents
from cli.commands.query import form_options, step_fields, step_options
from cli.evaluation.rows import Row, completed, parse_row
from cli.files import file_errors
from cli.options.global_options import Invocation, command
from cli.options.retrieval_options import answer_mode_option, filter_option, request_fields, settings_option
from cli.options.scope_options import scope_options, scope_parameter
from cli.output import print_note, progress
from cli.terminal_text import count as number
from daemon.contract.choices import NO_RETRIEVAL, Answerer
from daemon.contract.http.routes import K_MAX

if TYPE_CHECKING:
    from rich.text import Text


def _ks(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    try:
        ks = sorted({int(part) for part in value.split(",")})
    except ValueError:
        raise click.BadParameter("write numbers with commas between them, as in 2,5,10", context, parameter) from None
    if not all(1 <= k <= K_MAX for k in ks):
        raise click.BadParameter(f"each must be between 1 and {K_MAX}", context, parameter)
    return ks


@command("eval")
@click.argument("files", nargs=-1, required=True, metavar="QUESTIONS…", type=click.Path(path_type=Path))
@answer_mode_option
@filter_option
@click.option("--k", "ks", default="2,5,10", show_default=True, callback=_ks, help="Ranks to measure at.")
@click.option(
    "--compare",
    "compared",
    multiple=True,
    metavar="ROW,…|FILE",
    help="Measure several rows, and the difference of each to the first. A row is a mode, with KEY=VALUE for settings and "
    "options, such as 'fused filter=none damping=0.3' or 'answerer=deep only=local'; or a FILE that --save wrote. Repeatable.",
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
    metavar="K",
    help="Number of passages for an answer (-k of `ask`). Default: 5; of a deep answer, its own.",
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
@click.option(
    "--segment",
    metavar="K|random",
    help="With --continual: ask the questions of segment K, or of a random one (fixed seed), after it and each later one.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write the scores of each question to FILE, for a later --compare FILE. If the evaluation is interrupted, the same "
    "command continues it: answers are kept in FILE.part until FILE is written.",
)
@settings_option
@scope_options
def evaluate(
    invocation: Invocation,
    /,
    files: tuple[Path, ...],
    ks: list[int],
    compared: tuple[str, ...],
    count: int | None,
    segment: str | None,
    save: Path | None,
    scope: dict[str, Any] | None,
    **chosen: Any,
) -> None:
    """Reads the files of common data sets and {"question", "documents": [paths]} (docs/how-to/evaluation.md). Recall@k is the
    share of gold passages among the first k; all@k is the share of questions with all their gold passages among the first k.
    With --steps, the passages of all steps count. The daemon measures times, for one query at a time; with --compare, times do
    not include encoding the question. Several files are measured one after another, and their figures averaged."""
    specs, saved = _split(compared)
    rows = _rows(specs, saved, scope, **chosen)
    if count is not None and (saved or len(files) > 1):
        raise click.UsageError("--continual is for one file of questions and rows that are not saved.")
    first = _segment(segment, count)
    if save is not None and not save.absolute().parent.is_dir():
        raise click.UsageError(f"--save {save}: there is not a directory {save.absolute().parent}.")
    from cli.evaluation.comparison import averaged, read_saved
    from cli.evaluation.continual import evaluate_growth
    from cli.evaluation.questions import BookScopes, GoldLocator, read_questions
    from cli.evaluation.requests import AnswerJournal, EvalRequests, journal_of
    from cli.evaluation.run import evaluate as run
    from cli.render.evaluation import comparison_lines, continual_json, continual_lines, files_lines

    loaded = {path: read_questions(path, chosen["judge"]) for path in files}
    earlier = {path: [row for each in saved for row in read_saved(each, str(path))] for path in files}
    journal = AnswerJournal(journal_of(save)) if save is not None else None
    if journal is not None and journal.kept:
        print_note(
            f"continuing with {number(journal.kept, 'answer')} that an interrupted evaluation kept in {journal.file}; "
            "delete it to ask every question again."
        )
    client = invocation.client()
    list_documents = cache(lambda: all_documents(client, scope_parameter(scope)))
    lines: Callable[[], Iterable[Text]]
    with progress("evaluating") as shown:
        answers = itertools.count(1)
        requests = EvalRequests(
            client,
            ks,
            chosen["judge"],
            scope,
            on_answer=lambda: shown(f"evaluating: {number(next(answers), 'answer')}"),
            journal=journal,
        )
        books = BookScopes(list_documents)
        loaded = {path: [*map(books.scoped, questions)] for path, questions in loaded.items()}
        if books.absent:
            print_note(
                f"{number(books.absent, 'question')} of books that the memory does not contain under their names: asked of "
                "the whole memory."
            )
        if count is not None:
            [questions] = loaded.values()
            growth = evaluate_growth(questions, rows, list_documents(), count, requests, first)
            whole = printed = continual_json(growth, bool(specs))
            lines = partial(continual_lines, growth, len(questions))
        else:
            locator = GoldLocator(
                requests.word_matches, lambda: [each.uri for each in list_documents() if each.passages]
            )
            found = {
                str(path): run([*map(locator.locate, questions)], rows, requests, earlier[path])
                for path, questions in loaded.items()
            }
            if len(found) > 1:
                several = averaged(found)
                whole = printed = several.model_dump(mode="json")
                lines = partial(files_lines, several)
            else:
                [one] = found.values()
                whole = one.model_dump(mode="json")
                printed = whole if compared else whole["modes"][0]
                lines = partial(comparison_lines, one)
    if save is not None:
        with file_errors(save, "written"):
            save.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
            journal_of(save).unlink(missing_ok=True)
    invocation.emit(printed, lines, wrap=False)


def _rows(
    specs: Sequence[str],
    saved: Sequence[Path],
    scope: dict[str, Any] | None,
    mode: str | None,
    filter_: str | None,
    settings: dict[str, Any],
    answers: bool,
    judge: bool,
    answerer: str | None,
    read: int | None,
    length: int | None,
    reason: bool,
    **steps: Any,
) -> list[Row]:
    """Returns the rows to measure: the rows of `--compare`, or else one row if fewer than two rows are saved."""
    # `completed` refuses fields of a row that have no effect.
    answering = {name: value for name, value in step_fields({**steps, "deep": True}).items() if name != "deep"}
    base = Row(
        mode=mode,
        answerer=_answerer(answers or judge, answerer, steps),
        retrieval=request_fields({"filter_": filter_, "settings": settings}),
        answering=answering | request_fields({"length": length, "reason": reason}),
        read=read,
    )
    if mode and specs:
        raise click.UsageError("--mode and --compare exclude each other.")
    if mode == NO_RETRIEVAL and scope and not specs:
        raise click.UsageError("a scope has no effect without retrieval.")
    if not specs and (len(saved) < 2 or mode or answerer):
        return [completed(base)]
    return [parse_row(spec, base) for spec in dict.fromkeys(specs)]


def _segment(segment: str | None, count: int | None) -> str:
    if segment is None:
        return "1"
    if count is None:
        raise click.UsageError("--segment is for --continual N.")
    if segment != "random" and segment not in map(str, range(1, count + 1)):
        raise click.UsageError(f"--segment must be a number from 1 to {count}, or random.")
    return segment


def _split(compared: tuple[str, ...]) -> tuple[list[str], list[Path]]:
    """Returns (rows, files with saved rows) from the values of `--compare`."""
    specs: list[str] = []
    saved: list[Path] = []
    for each in compared:
        if each.endswith(".json") or os.path.isfile(each):  # noqa: PTH113 - Path.is_file raises for a long row
            saved.append(Path(each))
        else:
            specs += [part.strip() for part in each.split(",") if part.strip()]
    return specs, saved


def _answerer(answers: bool, answerer: str | None, steps: dict[str, Any]) -> Answerer | None:
    """Returns the method of answering, or None if only retrieval is measured."""
    if answerer is not None:
        return Answerer(answerer)
    if steps["steps"] is not None:
        return Answerer.ITERATIVE
    if unused := [name for name, value in steps.items() if value]:
        raise click.UsageError(f"--{unused[0].replace('_', '-')} is for --answerer deep or iterative.")
    return Answerer.SINGLE if answers else None
