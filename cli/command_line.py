"""The command line of hippoctl: its commands, and the conversion of every outcome to an exit code."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from cli.command_index import COMMANDS, COMMON_WORDS
from cli.errors import CommandError, Exit
from cli.files import file_errors
from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.output import print_json, print_note

LISTED = click.Group(commands={name: click.Command(name, help=text) for name, (_, text) in COMMANDS.items()})
"""The commands with their summaries, for help and completion."""


class Commands(click.Group):
    """The command group. For an unknown word it suggests the nearest command, by meaning or by spelling.

    A command is loaded when it is called, because its options may need imports that other commands do not.
    """

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        defined = vars(import_module(f"cli.commands.{COMMANDS[cmd_name][0]}")).values()
        return next(each for each in defined if isinstance(each, click.Command) and each.name == cmd_name)

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        LISTED.format_commands(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return LISTED.shell_complete(click.Context(LISTED), incomplete) + click.Command.shell_complete(
            self, ctx, incomplete
        )


@click.group(
    cls=Commands,
    commands=LISTED.commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--socket", metavar="PATH", help="hippod's socket. Default: $HIPPOD_SOCKET, then the configured one.")
@json_option
@click.version_option(package_name="hippod", message="hippoctl %(version)s", help="Show the version.")
@pass_invocation
def hippoctl(invocation: Invocation, socket: str | None) -> None:
    """Ask and feed a running hippod, a long-term memory for language models.

    Exit codes: 0 done, 1 failed, 2 usage, 3 no daemon answers, 4 not configured for the command, 5 timed out.
    """
    invocation.socket = socket


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code. Raises only unexpected errors."""
    try:
        code = _run(arguments, Invocation())
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # the terminal has written ^C
        return Exit.INTERRUPTED
    except BrokenPipeError:  # the reader closed the pipe
        _discard_output()
        return Exit.BROKEN_PIPE
    except OSError as error:
        _discard_output()
        print_note(f"standard output cannot be written: {error.strerror or error}.")
        return Exit.FAILED
    return code


def _discard_output() -> None:
    """Discards buffered output, so that Python exits without an error message."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _run(arguments: Sequence[str], invocation: Invocation) -> int:
    try:
        if "_HIPPOCTL_COMPLETE" in os.environ:
            hippoctl.main(list(arguments), prog_name="hippoctl", obj=invocation)
        # click's `main` would handle interrupts and closed pipes itself.
        with hippoctl.make_context("hippoctl", list(arguments), obj=invocation) as context:
            with file_errors("the current directory", "found"):
                Path.cwd()
            hippoctl.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        failure = CommandError(error.format_message(), Exit.USAGE)
        return _end(failure, invocation.json or "--json" in arguments)
    except CommandError as failure:
        return _fail(failure, invocation)
    except OSError as error:
        if error.filename is None:
            raise  # an error of writing the output, which `run` handles
        return _fail(CommandError(f"{error.filename} cannot be used: {error.strerror}."), invocation)
    except SystemExit as end:  # a command that failed although it printed its answer
        return end.code if isinstance(end.code, int) else Exit.FAILED
    return Exit.DONE


def _fail(failure: CommandError, invocation: Invocation) -> int:
    print_note(f"{failure.message} {failure.hint}" if failure.hint else failure.message)
    return _end(failure, invocation.json and not invocation.stdout_taken)


def _end(failure: CommandError, json: bool) -> int:
    if json:
        print_json(failure.to_json())
    return failure.code
