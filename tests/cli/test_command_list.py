"""Help and completion list the commands without loading them, and each command is what the list says."""

import subprocess
import sys
from importlib.metadata import version

import click
import pytest
from click.testing import CliRunner

from cli.command_index import COMMANDS
from cli.command_line import hippoctl
from tests.cli.scripted_daemon import Shell

COMPLETED = {
    "bash": "plain,scopes\nplain,sessions\nplain,show\nplain,status\n",
    "zsh": "plain\nscopes\nList the sources, labels and folders that...",
    "fish": "plain,scopes\tList the sources, labels and folders that...",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_listed_sentence_equals_the_short_help_of_its_command(name: str) -> None:
    command = hippoctl.get_command(click.Context(hippoctl), name)
    assert command is not None
    assert command.get_short_help_str(1000) == COMMANDS[name][1]


@pytest.mark.parametrize("shell", COMPLETED)
def test_command_name_is_completed(shell: str) -> None:
    environ = {"_HIPPOCTL_COMPLETE": f"{shell}_complete", "COMP_WORDS": "hippoctl s"}
    environ["COMP_CWORD"] = "s" if shell == "fish" else "1"
    assert CliRunner().invoke(hippoctl, prog_name="hippoctl", env=environ).output.startswith(COMPLETED[shell])


def test_version_is_the_installed_one() -> None:
    assert CliRunner().invoke(hippoctl, ["--version"]).output == f"hippoctl {version('hippod')}\n"


@pytest.mark.process
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["stat"]])
def test_no_command_is_loaded_to_list_the_commands(hippoctl: Shell, arguments: list[str]) -> None:
    code = f"import sys; from cli.command_line import run; run({arguments}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=hippoctl.environ)
    assert not [name for name in done.stderr.split() if name.startswith("cli.commands")]
