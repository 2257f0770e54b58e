"""query and ask: retrieve passages and answer questions."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cli.files import file_errors
from cli.options.global_options import Invocation, command, options
from cli.options.retrieval_options import (
    answer_mode_option,
    deep_settings_option,
    filter_option,
    flag_of,
    mode_option,
    refuse_settings_without_effect,
    request_fields,
    settings_option,
)
from cli.options.scope_options import scope_options
from cli.options.time_type import Duration, as_of_option
from cli.output import print_lines, width
from daemon.contract.choices import BUDGETS, DEEP_ONLY, Investigation
from daemon.contract.http.routes import (
    AFTER_TIMEOUT_MAX_S,
    K_MAX,
    LENGTH_MAX,
    QUERY_CHARS_MAX,
    SESSION_PATTERN,
    STEPS_MAX,
    TIMEOUT_MAX_S,
    Route,
)


def _text(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> str:
    text = " ".join(words).strip()
    if not text:
        raise click.BadParameter("is empty", context, parameter)
    if len(text) > QUERY_CHARS_MAX:
        raise click.BadParameter(f"has {len(text):,} characters; {QUERY_CHARS_MAX:,} are the most", context, parameter)
    return text


def _positions(context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for pair in pairs:
        key, equals, number = pair.rpartition("=")
        if not equals or not key or not re.fullmatch("[0-9]{1,18}", number):
            raise click.BadParameter(f"{pair!r} is not POSITION=N", context, parameter)
        found[key] = int(number)
    return found


question_options = options(
    click.argument("text", nargs=-1, required=True, metavar="TEXT", callback=_text),
    click.option("-k", type=click.IntRange(1, K_MAX), default=5, show_default=True, help="Number of passages."),
)
"""Adds TEXT, in quotes or as several words, and the number of passages."""


@command("query")
@question_options
@mode_option
@filter_option
@as_of_option
@click.option(
    "--after",
    multiple=True,
    metavar="POSITION=N",
    callback=_positions,
    help="Wait until the memory contains added=N (from `add`), TOPIC/PARTITION=OFFSET, or URI=OFFSET. Repeatable.",
)
@click.option(
    "--after-timeout",
    type=Duration(AFTER_TIMEOUT_MAX_S),
    metavar="TIME",
    help="How long --after waits. Default: 10s.",
)
@click.option("--explain", is_flag=True, help="Show how each passage was found.")
@settings_option
@scope_options
def query(invocation: Invocation, /, **chosen: Any) -> None:
    refuse_settings_without_effect(chosen["mode"], chosen["settings"])
    answer = invocation.call("POST", Route.QUERY, request_fields(chosen, text="query"))
    from cli.client.plain_answers import from_plain
    from cli.render.query import query_lines

    invocation.emit(answer, lambda: from_plain(lambda found: query_lines(found, width()), answer))


step_options = options(
    click.option(
        "--steps",
        type=click.IntRange(1, STEPS_MAX),
        metavar="N",
        help="With --deep: number of the last step; the first is 0 (default: 3). Otherwise: maximum number of retrievals, each "
        "with the model's last thought as its query.",
    ),
    click.option(
        "--only",
        type=click.Choice([each.value for each in Investigation]),
        help="With --deep: raise one kind of concern only.",
    ),
    click.option(
        "--quick",
        is_flag=True,
        help="With --deep: judge, raise concerns and write subqueries in one model call.",
    ),
    click.option("--each-step", is_flag=True, help="With --deep: also write an answer after every step."),
    click.option("--forced", is_flag=True, help="With --deep: make all steps, even if the points are sufficient."),
    deep_settings_option,
    click.option("--no-update", is_flag=True, help="With --deep: do not update points."),
    click.option("--no-merge", is_flag=True, help="With --deep: do not merge points."),
    click.option(
        "--max-calls", type=click.IntRange(1), metavar="N", help="Maximum number of model calls per question."
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(1),
        metavar="N",
        help="Maximum number of tokens per question, including the answer.",
    ),
    click.option(
        "--timeout",
        type=Duration(TIMEOUT_MAX_S, zero=False),
        metavar="TIME",
        help="Maximum time per question; a fifth is reserved for the answer.",
    ),
)
"""Adds the options of questions with several steps, except `--deep`."""


def step_fields(chosen: dict[str, Any]) -> dict[str, Any]:
    """Returns the options of a question as fields of the request. Raises UsageError for options of `step_options` without
    effect."""
    fields = request_fields(chosen, text="question")
    if not chosen["deep"] and (unused := [field for field in DEEP_ONLY if field in fields]):
        raise click.UsageError(f"{flag_of(unused[0])} is for --deep.")
    several = chosen["deep"] or chosen["steps"] is not None
    if not several and (unused := [field for field in BUDGETS if field in fields]):
        raise click.UsageError(f"{flag_of(unused[0])} is for questions of several steps: --deep, or --steps N.")
    return fields


form_options = options(
    click.option(
        "--length",
        type=click.IntRange(1, LENGTH_MAX),
        metavar="WORDS",
        help="Approximate length of the answer. Default: one to four sentences.",
    ),
    click.option("--reason", is_flag=True, help="Let the model write its reasoning before the answer."),
)
"""Adds the parameters `length` and `reason`, the form of the answer."""


def _session(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    if name is not None and not re.fullmatch(SESSION_PATTERN, name):
        rule = "letters, digits, underscores, dots and dashes; not first a dot or dash, and 60 at most"
        raise click.BadParameter(f"{name!r} is not a session name; use {rule}", context, parameter)
    return name


@command("ask")
@question_options
@click.option(
    "--deep", is_flag=True, help="Answer in steps with a working memory (docs/explanation/working-memory.md)."
)
@step_options
@answer_mode_option
@filter_option
@settings_option
@as_of_option
@form_options
@click.option("--verify", is_flag=True, help="TEXT is a claim: the short answer is true or false.")
@click.option(
    "--session",
    metavar="NAME",
    callback=_session,
    help="With --deep: continue with the points of this session.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write the answer with its steps to FILE as JSON; `show FILE --html OUT` draws it.",
)
@scope_options
def ask(invocation: Invocation, /, trace: Path | None, **chosen: Any) -> None:
    """Needs a language model; exits with 4 if none is configured.

    Without options: one retrieval and one answer. With --steps or --deep: several steps, which a terminal shows as they happen.
    If a budget is reached or the model fails in a step, the answer uses the findings so far and says so.
    """
    refuse_settings_without_effect(chosen["mode"], chosen["settings"])
    if chosen["session"] is not None and chosen["as_of"] is not None:
        raise click.UsageError("--session is of the present memory; ask as of an earlier time without it.")
    body = step_fields(chosen)
    if chosen["deep"] and click.get_current_context().get_parameter_source("k") is ParameterSource.DEFAULT:
        del body["k"]  # the server has another default for a deep question
    if trace is not None and not trace.absolute().parent.is_dir():
        raise click.UsageError(f"--trace {trace}: there is not a directory {trace.absolute().parent}.")
    from cli.client.typed_answers import parse_answer
    from cli.render.query import answer_lines, evidence_lines
    from daemon.contract.answering.ask import AskResponse

    if not invocation.json and sys.stdout.isatty():
        from cli.render.steps import stream_answer

        answer = stream_answer(invocation.client(), body)
        print_lines(evidence_lines(parse_answer(AskResponse, answer), width()))
    else:
        answer = invocation.call("POST", Route.ASK, body)
        invocation.emit(answer, lambda: answer_lines(parse_answer(AskResponse, answer), width()))
    if trace is not None:
        with file_errors(trace, "written"):
            trace.write_text(json.dumps(answer, ensure_ascii=False, indent=1) + "\n", "utf-8")
