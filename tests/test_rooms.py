"""The rooms import one another in one direction only, as docs/architecture.md draws them."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {
    "consumers": set(),
    "store": set(),
    "memory": {"store"},
    "daemon": {"consumers", "memory", "store"},
    "cli": {"daemon"},
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_those_below_it(room):
    files = list((ROOT / room).rglob("*.py"))
    assert files
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imports(path)
        if (top := name.split(".")[0]) in ROOMS and top != room and top not in ROOMS[room]
    ]
    assert not wrong


def test_the_client_knows_only_the_contract_of_the_server():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / "cli").rglob("*.py")
        for name in imports(path)
        if name.startswith("daemon") and not name.startswith("daemon.contract")
    ]
    assert not wrong


def test_the_api_knows_only_its_ports():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / "daemon" / "api").rglob("*.py")
        for name in imports(path)
        if name.startswith(("daemon.pipeline", "daemon.services", "daemon.run", "store", "memory", "consumers"))
    ]
    assert not wrong
