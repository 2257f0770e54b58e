"""hippoctl's entry: the commands, and how every way a run can end becomes an exit code."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import click

from cli.commands.add import add, import_
from cli.commands.backup import backup, restore, verify
from cli.commands.completion import completion
from cli.commands.confirm import confirm
from cli.commands.doctor import doctor
from cli.commands.documents import list_documents, retry, rm, show
from cli.commands.eval import evaluate
from cli.commands.export import export
from cli.commands.graph import graph
from cli.commands.mcp import mcp
from cli.commands.query import ask, query
from cli.commands.reextract import backfill, reextract
from cli.commands.scopes import scopes
from cli.commands.sessions import sessions
from cli.commands.status import status, wait, watch
from cli.commands.ui import ui
from cli.errors import CommandError, Exit
from cli.global_options import Invocation, json_option, pass_invocation
from cli.output import print_json, print_note


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        try:
            click.echo(f"hippoctl {version('hippod')}")
        except PackageNotFoundError:  # run from a checkout that is not installed
            click.echo("hippoctl, not installed")
        context.exit()


COMMON_WORDS = {
    "search": "query", "find": "query", "list": "ls", "documents": "ls", "files": "ls", "get": "show", "cat": "show",
    "remove": "rm", "delete": "rm", "forget": "rm", "health": "doctor", "check": "doctor", "info": "status",
    "stats": "status", "events": "watch", "log": "watch", "logs": "watch", "save": "export", "dump": "export",
    "reindex": "reextract", "page": "ui", "web": "ui", "upload": "add", "put": "add",
}  # fmt: skip
"""What other programs call what a command here does: suggested where no spelling is near."""


class Commands(click.Group):
    """The commands; a word that is none of them gets the nearest, by meaning or by spelling."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            if args[0] == "help":
                click.echo(ctx.get_help())
                ctx.exit()
            if args[0] in COMMON_WORDS:
                raise click.UsageError(f"No such command {args[0]!r}. Did you mean {COMMON_WORDS[args[0]]!r}?", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--socket", metavar="PATH", help="hippod's socket. Default: $HIPPOD_SOCKET, then the configured one.")
@json_option
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@pass_invocation
def hippoctl(invocation: Invocation, socket: str | None) -> None:
    """Ask and feed a running hippod, a long-term memory for language models.

    Exit codes: 0 done, 1 failed, 2 usage, 3 no daemon answers, 4 not configured for it, 5 timed out.
    """
    invocation.socket = socket


for _command in (
    status, wait, query, ask, add, rm, list_documents, show, retry, watch, import_, evaluate, export, doctor, reextract,
    backfill, confirm, scopes, sessions, verify, backup, restore, completion, graph, mcp, ui,
):  # fmt: skip
    hippoctl.add_command(_command)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A locale without some character must not end a command; stdin is read as bytes.
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command; returns its exit code. Nothing is raised."""
    try:
        code = _run(arguments, Invocation())
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # the terminal has written ^C
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader has what it wanted. What is still buffered goes nowhere, so that leaving Python stays quiet too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return Exit.BROKEN_PIPE
    return code


def _run(arguments: Sequence[str], invocation: Invocation) -> int:
    try:
        if "_HIPPOCTL_COMPLETE" in os.environ:
            hippoctl.main(list(arguments), prog_name="hippoctl", obj=invocation)
        # Not `main` otherwise: click handles interrupts and closed pipes itself there.
        with hippoctl.make_context("hippoctl", list(arguments), obj=invocation) as context:
            hippoctl.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        failure = CommandError(error.format_message(), Exit.USAGE)
        return _end(failure, invocation.json or "--json" in arguments)
    except CommandError as failure:
        print_note(f"{failure.message} {failure.hint}" if failure.hint else failure.message)
        return _end(failure, invocation.json and not invocation.stdout_taken)
    except SystemExit as end:  # a command that has printed its answer and failed all the same
        return end.code if isinstance(end.code, int) else Exit.FAILED
    return Exit.DONE


def _end(failure: CommandError, json: bool) -> int:
    if json:
        print_json(failure.to_json())
    return failure.code


if __name__ == "__main__":
    main()
