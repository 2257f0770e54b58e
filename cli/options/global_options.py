"""The options before a command, and helpers that declare commands."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.client.address import Address, find_socket
from cli.command_index import COMMANDS
from cli.output import print_json, print_lines, print_note

if TYPE_CHECKING:
    from rich.text import Text

    from cli.client.http import Client

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass
class Invocation:
    """One run of hippoctl. Mutable, because click sets its fields while it parses the command line."""

    socket: str | None = None
    json: bool = False
    stdout_taken: bool = False
    """Whether stdout already contains the output or a part of it. Errors then go to stderr only."""

    def address(self) -> Address:
        return find_socket(self.socket, os.environ, Path.cwd())

    def client(self) -> "Client":
        """Returns a client that prints once on stderr why it waits for a daemon that is starting or busy."""
        from cli.client.http import Client  # loaded only by commands that ask the daemon

        printed: set[str] = set()

        def on_wait(message: str) -> None:
            if message not in printed:
                printed.add(message)
                print_note(f"{message} Waiting.")

        return Client(self.address(), on_wait)

    def call(
        self, method: str, path: str, body: object = None, params: Mapping[str, str | int] | None = None
    ) -> dict[str, Any]:
        """Sends one request and returns the daemon's JSON object."""
        return self.client().call(method, path, body, params)

    def emit(self, document: object, lines: "Callable[[], Iterable[Text]]", *, wrap: bool = True) -> None:
        """Prints the answer: `document` with --json, otherwise the `lines`."""
        if self.json:
            print_json(document)
            self.stdout_taken = True  # later errors go to stderr only: stdout must contain one JSON document
        else:
            print_lines(lines(), wrap=wrap)


pass_invocation = click.make_pass_decorator(Invocation)


def json_option(command: Command) -> Command:
    """Adds `--json`, which is accepted before and after the command."""

    def switch(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.ensure_object(Invocation).json = True

    return click.option(
        "--json", is_flag=True, expose_value=False, callback=switch, help="Print exactly one JSON document on stdout."
    )(command)


def options(*declared: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Returns a decorator that adds several options, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(declared):
            command = option(command)
        return command

    return add


def command(name: str, *, json: bool = True) -> Callable[[Callable[..., None]], click.Command]:
    """Declares a command of `COMMANDS`; its function receives the invocation and the values of the options.

    Its help is the summary in `COMMANDS`, then the docstring. `json`: whether the command has `--json`.
    """

    def declared(function: Callable[..., None]) -> click.Command:
        paragraphs = filter(None, (COMMANDS[name][1], cleandoc(function.__doc__ or "")))
        made = click.command(name, help="\n\n".join(paragraphs))(pass_invocation(function))
        return json_option(made) if json else made

    return declared
