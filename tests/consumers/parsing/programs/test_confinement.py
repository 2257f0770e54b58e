"""A program that a hostile file takes over reaches no network, no other file, and does not exceed its limits."""

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from consumers.parsing.limits import MIB, Limits
from consumers.parsing.programs.run import ProgramFailed, run_program

pytestmark = pytest.mark.process


def run(script: str, arguments: Sequence[object] = (), folder: Path | None = None) -> str:
    limits = Limits(program_seconds=2, program_memory_bytes=256 * MIB)
    command = ["/bin/bash", "-c", script, "bash", *map(str, arguments)]
    return run_program(command, limits, folder=None if folder is None else str(folder)).decode()


def test_confined_program_accesses_only_its_own_folder(tmp_path: Path) -> None:
    own, secret = tmp_path / "own", tmp_path / "secret"
    own.mkdir()
    secret.write_text("amber")
    assert run('echo lamp > "$1/a"; cat "$1/a"', [own], own) == "lamp\n"
    for script in ('cat "$1"', 'echo x >> "$1"', 'rm "$1"', 'ln "$1" own/b', 'ls "$(dirname "$1")"'):
        with pytest.raises(ProgramFailed, match=r"Permission denied|Operation not permitted|cross-device|No such file"):
            run(script, [secret], own)
    assert secret.read_text() == "amber"


def test_confined_program_cannot_use_the_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        for kind in ("tcp", "udp"):
            with pytest.raises(ProgramFailed, match="Permission denied"):
                run(f"exec 3<>/dev/{kind}/127.0.0.1/$1", [server.getsockname()[1]])
        with pytest.raises(BlockingIOError):
            server.accept()


def test_processor_time_and_memory_of_a_confined_program_are_limited() -> None:
    with pytest.raises(ProgramFailed, match=r"took too long|of processor time"):
        run("while :; do :; done")
    with pytest.raises(ProgramFailed):
        run('x=$(head -c 400000000 /dev/zero | tr "\\0" x); echo ${#x}')
