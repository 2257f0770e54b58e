"""hippoctl answers at once: what need not read the command line does not, and says the same word for word."""

import pytest
from click import Context
from click.shell_completion import BashComplete, FishComplete, ZshComplete
from click.testing import CliRunner

from cli.command_index import COMMANDS
from cli.command_line import LoadedCommands, hippoctl
from cli.quick_answers import help_text, quick_answer, summary

SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "_HIPPOCTL_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("columns", [20, 53, 60, 79, 80, 99, 100, 101, 200])
def test_the_help_is_clicks_own(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    context = hippoctl.make_context("hippoctl", [], resilient_parsing=True)
    assert quick_answer(["--help"]) == f"{context.get_help()}\n"
    assert quick_answer(["-h"]) == help_text(columns)


@pytest.mark.parametrize(
    "arguments", [[], ["status"], ["--json", "--help"], ["--help", "status"], ["query", "--version"]]
)
def test_whatever_else_stands_there_is_read(arguments: list[str]) -> None:
    assert quick_answer(arguments) is None


def test_each_sentence_is_the_beginning_of_its_commands_help() -> None:
    commands = LoadedCommands()
    for name, (_, _, sentence) in COMMANDS.items():
        assert commands[name].name == name
        assert commands[name].get_short_help_str(1000) == sentence
        for columns in (20, 45, 60):
            assert commands[name].get_short_help_str(columns) == summary(name, columns)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("typed", ["", "s", "stat", "nothing"])
def test_names_are_completed_as_click_completes_them(shell: str, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_HIPPOCTL_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", f"hippoctl {typed}")
    monkeypatch.setenv("COMP_CWORD", typed if shell == "fish" else "1")
    completed = SHELLS[shell](hippoctl, {}, "hippoctl", "_HIPPOCTL_COMPLETE").complete()
    assert quick_answer([]) == (f"{completed}\n" if completed else "")


@pytest.mark.parametrize(
    ("words", "at"), [("hippoctl query --m", "2"), ("hippoctl -", "1"), ("hippoctl 'st", "1"), ("hippoctl", "x")]
)
def test_options_and_quoted_words_are_clicks_to_complete(words: str, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for shell in ("bash", "zsh"):
        monkeypatch.setenv("_HIPPOCTL_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", at)
        assert quick_answer([]) is None


def test_after_a_command_fish_completes_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_HIPPOCTL_COMPLETE", "fish_complete")
    monkeypatch.setenv("COMP_WORDS", "hippoctl status ")
    monkeypatch.setenv("COMP_CWORD", "")
    assert quick_answer([]) is None


def test_commands_are_completed_without_being_loaded() -> None:
    commands = hippoctl.commands
    assert isinstance(commands, LoadedCommands)
    loaded = dict(commands._loaded)
    commands._loaded.clear()
    try:
        items = hippoctl.shell_complete(Context(hippoctl), "s")
        assert [item.value for item in items] == ["scopes", "sessions", "show", "status"]
        assert commands._loaded == {}
    finally:
        commands._loaded.update(loaded)


def test_the_version_is_the_installed_ones() -> None:
    assert quick_answer(["--version"]) == CliRunner().invoke(hippoctl, ["--version"]).output
