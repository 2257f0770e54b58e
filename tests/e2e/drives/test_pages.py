"""The commands of README and of the first tutorial, run as printed there, give the output printed there."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.real_hippod import ROOT, clean_environment, until
from tests.page_session import Command, Session, commands, differences

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(600)]

SET_UP = ("make ", "export PATH=")
"""Commands that install hippod: these tests run in its environment already."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yields a folder with a short path: hippoctl breaks long lines, and the pages show paths below /home/you."""
    with tempfile.TemporaryDirectory(prefix="d") as found:
        yield Path(found)


def environment(home: Path) -> dict[str, str]:
    return clean_environment(home) | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "100"}


def run(session: Session, found: list[Command]) -> list[str]:
    wrong = []
    for command in found:
        if command.text.startswith(SET_UP):
            continue
        printed = session.run(command.text)
        if difference := differences(command.expected, printed):
            wrong.append(f"$ {command.text}\n{difference}")
    return wrong


def test_the_commands_of_the_readme_print_what_it_shows(folder: Path) -> None:
    shutil.copytree(ROOT / "examples/drive", folder / "drive")
    shutil.copy(ROOT / "config.toml", folder)
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    with Session(folder, environment(folder)) as session:
        session.run("hippod --config config.toml 2> log &")
        until((folder / "var/hippod.sock").exists, "the socket is there")
        assert run(session, commands((ROOT / "README.md").read_text("utf-8"))) == []


def test_the_commands_of_the_first_tutorial_print_what_it_shows(folder: Path) -> None:
    page = (ROOT / "docs/tutorials/notes-folder.md").read_text("utf-8")
    with Session(folder, environment(folder)) as session:
        assert run(session, commands(page)) == []
