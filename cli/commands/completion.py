"""completion: the scripts with which shells complete hippoctl's commands and options."""

import os
from pathlib import PurePath

import click
from click.shell_completion import get_completion_class

from cli.options.global_options import Invocation, command

SHELLS = ("bash", "zsh", "fish")
_INSTALL_PATHS = {
    "bash": "~/.local/share/bash-completion/completions/hippoctl",
    "zsh": "a file _hippoctl in a directory of $fpath",
    "fish": "~/.config/fish/completions/hippoctl.fish",
}


@command("completion")
@click.argument("shell", required=False, type=click.Choice(SHELLS))
def completion(invocation: Invocation, shell: str | None) -> None:
    """bash: hippoctl completion bash > ~/.local/share/bash-completion/completions/hippoctl"""
    shell = shell or PurePath(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell) if shell in SHELLS else None
    if kind is None:
        raise click.UsageError(f"$SHELL is not one of {', '.join(SHELLS)}; name the shell.")
    root = click.get_current_context().find_root().command
    script = kind(root, {}, "hippoctl", "_HIPPOCTL_COMPLETE").source()
    if invocation.json:
        from cli.output import print_json

        print_json({"shell": shell, "script": script, "goes_to": _INSTALL_PATHS[shell]})
    else:
        click.echo(script)
