"""The command line of hippoctl: its commands, and the conversion of every outcome to an exit code."""

import os
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from cli.command_index import COMMANDS, COMMON_WORDS, HELP, OPTIONS
from cli.errors import CommandError, Exit
from cli.options.global_options import Invocation, json_option, pass_invocation
from cli.output import print_json, print_note
from cli.quick_answers import COMPLETION_SUMMARY_COLUMNS, HELP_COLUMNS_MAX, summary, version_text


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(version_text(), nl=False)
        context.exit()


class LoadedCommands(MutableMapping[str, click.Command]):
    """The commands by name. Each is loaded on lookup, because its options may need imports that other commands do not."""

    def __init__(self) -> None:
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, function, _ = COMMANDS[name]
            self._loaded[name] = getattr(import_module(f"cli.commands.{module}"), function)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS


class Commands(click.Group):
    """The command group. For an unknown word it suggests the nearest command, by meaning or by spelling."""

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
        """Lists the commands like click does, without loading them."""
        room = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(name, room)) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes command names like click does, without loading them."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=summary(name, COMPLETION_SUMMARY_COLUMNS)) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=Commands,
    commands=LoadedCommands(),
    help="\n\n".join(HELP),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_COLUMNS_MAX},
)
@click.option("--socket", metavar="PATH", help=OPTIONS["--socket PATH"])
@json_option
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help=OPTIONS["--version"]
)
@pass_invocation
def hippoctl(invocation: Invocation, socket: str | None) -> None:
    invocation.socket = socket


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code. Raises nothing."""
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
        if error.filename is not None:
            raise  # not an error of writing the output
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
        # Not click's `main`, which handles interrupts and closed pipes itself.
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
    except SystemExit as end:  # a command that printed its answer and failed nevertheless
        return end.code if isinstance(end.code, int) else Exit.FAILED
    return Exit.DONE


def _end(failure: CommandError, json: bool) -> int:
    if json:
        print_json(failure.to_json())
    return failure.code
