"""`docs/reference/logs.md` lists every event that the code logs, with its level and fields, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROOMS = ("daemon", "consumers", "memory", "store")
LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}
NAME = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")
ALWAYS = {"exc_info"}
OUTAGE = ROOT / "daemon/pipeline/outage.py"
TRIES = {"failed", "wait", "until_done"}
"""Methods of `Dependency` in `OUTAGE`, which log the event of their first argument as a warning."""
ROW = re.compile(r"^### (\w+)$|^- `(\w+)`(?: \((.+?)\))?: (.+)$", re.MULTILINE)
"""The heading of a level, or an event below it with its fields."""
ALSO = {"request": {"debug"}}
"""Further levels of events, as their rows say."""
PEER = {"pid", "uid", "gid", "address", "client"}


def calls() -> Iterator[tuple[Path, ast.Call, str]]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                target = node.func.value
                if path == OUTAGE and isinstance(next(iter(node.args), None), ast.Name):
                    continue  # `outages` reads the name from the callers
                if isinstance(target, ast.Name) and target.id in ("log", "logger") and node.func.attr in LEVELS:
                    yield path.relative_to(ROOT), node, node.func.attr


def outages() -> Iterator[tuple[str, set[str]]]:
    """Events of outages with their fields."""
    for path in (ROOT / "daemon").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(ast.Attribute(attr=attr), [ast.Constant(str(name)), *_], keywords) if attr in TRIES:
                    fields = {word.arg for word in keywords if word.arg} - {"what", "since"}
                    yield name, (fields | {"error", "retry_s"}) - ALWAYS


def logged() -> dict[str, tuple[set[str], set[str]]]:
    """Levels and fields by event."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for path, call, level in calls():
        where = f"{path}:{call.lineno}"
        assert call.args, f"{where} logs no event"
        name = call.args[0]
        assert isinstance(name, ast.Constant), f"{where}: an event's name is a constant"
        assert isinstance(name.value, str), where
        assert NAME.fullmatch(name.value), f"{where}: {name.value!r}: write an event's name as lower_case_words"
        assert len(call.args) == 1, f"{where}: what varies goes into fields"
        levels, fields = found.setdefault(name.value, (set(), set()))
        levels.add("error" if level == "exception" else level)
        fields.update(word.arg for word in call.keywords if word.arg and word.arg not in ALWAYS)
    for event, named in outages():
        levels, fields = found.setdefault(event, (set(), set()))
        levels.add("warning")
        fields |= named
    return found


def written() -> dict[str, tuple[set[str], set[str]]]:
    table = (ROOT / "docs/reference/logs.md").read_text().partition("## Events")[2]
    found = {}
    level = ""
    for heading, name, fields, _ in ROW.findall(table):
        if heading:
            level = heading.lower()
            continue
        assert name not in found, f"docs/reference/logs.md names {name} twice"
        found[name] = ({level} | ALSO.get(name, set()), set(re.findall(r"`(\w+)`", fields)))
    return found


def test_every_event_is_in_the_docs_with_its_level_and_fields() -> None:
    code, docs = logged(), written()
    assert sorted(set(code) - set(docs)) == [], "logged and not in docs/reference/logs.md: add a row for each"
    assert sorted(set(docs) - set(code)) == [], "in docs/reference/logs.md and not logged any more: take the row out"
    wrong = {name: (code[name], docs[name]) for name in code if code[name][0] != docs[name][0]}
    assert wrong == {}
    optional = {"request": {"method", "route", "status", "took_ms"} | PEER, "kafka_state": {"detail"}}
    optional["request_refused"] = optional["request"]
    other = {n: (code[n][1], docs[n][1]) for n in code if code[n][1] != docs[n][1] - optional.get(n, set())}
    assert other == {}


def test_daemon_packages_log_only_through_structlog() -> None:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text()
            assert not re.search(r"^(log|logger) = logging\.", text, re.MULTILINE), (
                f"{path}: use structlog.get_logger()"
            )
            assert "print(" not in re.sub(r"\w+_?print\(|\.print\(", "", text) or path.name in ("worker_main.py",), path
