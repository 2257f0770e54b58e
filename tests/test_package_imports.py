"""The rooms import one another in one direction only, as docs/reference/import-rules.md says."""

import ast
from graphlib import TopologicalSorter
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

DAEMON_ROOMS = {
    "backfill_main": {"backfill", "config", "observe"},
    "backfill": {"config", "fleet", "model_factory", "parser_pool", "pipeline"},
    "worker_main": {"api", "config", "config_types", "fleet", "observe", "runtime"},
    "fleet": {
        "api",
        "config",
        "model_factory",
        "observe",
        "parser_pool",
        "pipeline",
        "runtime",
        "sources",
    },
    "main": {"api", "app", "config", "config_types", "doctor", "observe", "runtime"},
    "app": {
        "api",
        "config",
        "config_types",
        "contract",
        "costs",
        "mcp",
        "model_factory",
        "observe",
        "page",
        "parser_pool",
        "pipeline",
        "runtime",
        "services",
        "sources",
    },
    "doctor": {"config", "config_types", "contract", "model_settings", "observe", "runtime", "sources"},
    "model_factory": {"config", "costs", "model_settings", "observe", "parser_pool", "pipeline"},
    "model_settings": {"config", "observe"},
    "runtime": {"api", "config", "config_types", "contract", "observe", "pipeline", "sources"},
    "mcp": {"contract", "errors"},
    "page": {"api", "contract", "errors"},
    "api": {"config_types", "contract", "errors", "observe", "services", "sources"},
    "services": {"config_types", "contract", "costs", "errors", "observe", "pipeline", "sources"},
    "config": {"config_types", "contract", "sources"},
    "sources": {"config_types", "contract", "parser_pool", "pipeline"},
    "pipeline": {"append_file", "contract", "costs", "errors", "observe", "parser_pool"},
    "costs": {"append_file", "contract"},
    "append_file": set(),
    "parser_pool": {"observe"},
    "errors": {"contract"},
    "observe": {"contract"},
    "config_types": {"contract"},
    "contract": set(),
}
"""Files at the door count as rooms. Each room imports only rooms below its row."""
STORE_ROOMS = {
    "backup": {
        "backup_layout",
        "checkpoint",
        "durable_files",
        "errors",
        "lance",
        "log",
        "object_store",
        "sessions",
        "store",
        "untrusted_names",
    },
    "verify": {
        "change",
        "checkpoint",
        "durable_files",
        "errors",
        "export",
        "fixed_point",
        "index",
        "lance",
        "log",
        "maintenance",
        "rows",
        "snapshot",
        "store",
        "types",
    },
    "store": {
        "backup_layout",
        "change",
        "checkpoint",
        "errors",
        "index",
        "lance",
        "log",
        "maintenance",
        "as_of",
        "live_memory",
        "reader",
        "reencode",
        "scope",
        "snapshot",
        "types",
        "upgrade_backup",
    },
    "upgrade_backup": {"backup_layout", "durable_files", "errors", "lance", "log", "sessions", "untrusted_names"},
    "backup_layout": {"durable_files", "untrusted_names"},
    "sessions": {"durable_files", "errors", "untrusted_names"},
    "as_of": {"change", "errors", "index", "lance", "live_memory", "log", "scope", "snapshot", "types"},
    "scope": {"change", "errors", "fixed_point", "index", "links", "rows", "snapshot", "types"},
    "reader": {
        "change",
        "index",
        "lance",
        "live_memory",
        "log",
        "maintenance",
        "reencode",
        "snapshot",
        "types",
    },
    "reencode": {
        "change",
        "durable_files",
        "errors",
        "fixed_point",
        "index",
        "lance",
        "log",
        "types",
    },
    "maintenance": {
        "change",
        "checkpoint",
        "fixed_point",
        "index",
        "lance",
        "live_memory",
        "log",
        "rows",
        "snapshot",
        "types",
    },
    "checkpoint": {
        "change",
        "durable_files",
        "fixed_point",
        "index",
        "lance",
        "links",
        "live_memory",
        "log",
        "text",
        "types",
        "untrusted_names",
    },
    "live_memory": {"change", "index", "lance", "log", "scope", "snapshot"},
    "change": {"errors", "fixed_point", "index", "lance", "links", "rows", "types"},
    "export": {"links", "rows", "snapshot"},
    "snapshot": {"index", "types"},
    "index": {"durable_files", "fixed_point", "lance", "links", "rows", "text", "types"},
    "log": {"durable_files", "errors", "fixed_point", "lance", "types"},
    "lance": {"durable_files", "errors", "fixed_point", "types"},
    "links": {"types"},
    "text": set(),
    "object_store": set(),
    "durable_files": set(),
    "private_files": set(),
    "untrusted_names": {"errors"},
    "errors": set(),
    "fixed_point": set(),
    "rows": set(),
    "types": {"fixed_point"},
}
"""Files at the door count as rooms. Each room imports only rooms below its row."""


@pytest.mark.parametrize("rooms", [ROOMS, DAEMON_ROOMS, STORE_ROOMS], ids=["top", "daemon", "store"])
def test_package_dependencies_have_no_cycle(rooms):
    TopologicalSorter(rooms).prepare()  # raises CycleError


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


def test_cli_imports_only_contract_and_mcp_of_the_daemon():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / "cli").rglob("*.py")
        for name in imports(path)
        if name.startswith("daemon") and not name.startswith(("daemon.contract", "daemon.mcp"))
    ]
    assert not wrong


def type_checking_imports(path):
    guarded = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.If)]
    return {
        node.module
        for block in guarded
        if ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    }


def test_api_imports_services_only_through_its_ports():
    ports = ROOT / "daemon" / "api" / "ports.py"
    types = type_checking_imports(ports)
    assert types  # the services that the routes call: the type checker knows them, and no module loads them
    assert all(name.startswith("daemon.services") for name in types)
    assert types.isdisjoint(
        node.module for node in ast.parse(ports.read_text()).body if isinstance(node, ast.ImportFrom)
    )
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / "daemon" / "api").rglob("*.py")
        for name in imports(path)
        if name.startswith(("daemon.pipeline", "daemon.services", "daemon.app", "store", "memory", "consumers"))
        and not (path == ports and name in types)
    ]
    assert not wrong


def wrong_imports(package, rooms, room_of):
    for path in (ROOT / package).rglob("*.py"):
        inside = path.relative_to(ROOT / package).with_suffix("").parts
        if inside == ("__init__",):
            continue
        room = room_of(inside[0])
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == package and len(parts) > 1:
                imported = room_of(parts[1])
                if imported != room and imported not in rooms[room]:
                    yield f"{path.relative_to(ROOT)} imports {name}"


def test_a_room_of_the_daemon_imports_only_the_rooms_of_its_row():
    assert list(wrong_imports("daemon", DAEMON_ROOMS, lambda name: name)) == []


def test_a_room_of_the_store_imports_only_the_rooms_of_its_row():
    assert list(wrong_imports("store", STORE_ROOMS, lambda name: name)) == []
