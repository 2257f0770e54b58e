"""Writes the manual pages of hippod, hippod-backfill, hippod-worker, hippoctl and hippod.toml: `python manual.py FOLDER`.

The texts come from `--help` and `config.toml`: the commands give their options, the model of the configuration its keys. Run it
with the Python in which hippod is installed. The documentation site has the same pages (`docs/site/reference.py`). Each page is
written to a `Page`, which has an implementation for roff and one for Markdown.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from inspect import cleandoc, getmodule, getsource
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, get_args

import click
import roff

from cli.command_line import hippoctl
from daemon.backfill_main import main as backfill
from daemon.config import Config, sections
from daemon.config.messages import _number, field_at
from daemon.main import main as hippod
from daemon.worker_main import main as worker

ROOT = Path(__file__).resolve().parents[2]
VERSION = version("hippod")

FILES = [
    (["/etc/hippod/config.toml"], "The configuration of `hippod.service`."),
    (["/etc/hippod/NAME.toml"], "The configuration of `hippod@NAME.service`, one hippod for one drive."),
    (
        ["/etc/hippod/credentials/"],
        "A token for TCP (`token`) and a model's key (`llm-key`), given to hippod by systemd; those of an instance are "
        "`NAME-token` and `NAME-llm-key`.",
    ),
    (["/var/lib/hippod/store/"], "The memory. Back it up with `hippoctl backup`, not by copying it while hippod runs."),
    (["/run/hippod/hippod.sock"], "The socket; members of the group `hippod` may use it."),
    (
        ["/usr/share/doc/hippod/"],
        "The documentation, a configuration with every setting, a dashboard, and drop-ins for systemd.",
    ),
]

SERVICE = """
hippod speaks systemd's protocols where systemd starts it. It says `READY=1` once a query has been answered on its socket,
`STATUS=` what it is doing (`systemctl status hippod` shows it), `RELOADING=1` around a reload and `STOPPING=1` when it
stops. It says `WATCHDOG=1` only while its event loop, the thread that commits, the threads that answer and the socket all
move; when systemd aborts it for being silent, every thread's place is in the journal.

A socket that systemd has made (`hippod.socket`) is taken as it is, and its file is left alone: its mode and group are the
unit's. A query that comes while hippod starts or restarts waits for it.

The unit gives hippod no more than it needs: all of the system is read-only or hidden, and a drive is shown to it by a
drop-in, for reading only.
"""

HIPPOD_ENVIRONMENT = [
    (["HIPPOD_CONFIG"], "The configuration file, where `--config` names none."),
    (["HIPPOD_SECTION__KEY"], "A setting, in place of the one in the file: `HIPPOD_DAEMON__LOG_LEVEL=debug`."),
    (
        ["CREDENTIALS_DIRECTORY"],
        "Where systemd puts what `LoadCredential=` names; the configuration may name files in it.",
    ),
    (["NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS"], "Set by systemd: see `sd_notify(3)` and `sd_listen_fds(3)`."),
]
HIPPOCTL_ENVIRONMENT = [
    (["HIPPOD_SOCKET"], "The daemon's socket, where `--socket` names none."),
    (
        ["HIPPOD_API__SOCKET", "HIPPOD_CONFIG"],
        "The socket in place of the configured one, and the configuration that names it, where neither is given.",
    ),
    (["HIPPOD_MCP__WRITE"], "For `hippoctl mcp`: whether agents are given the tools that add and forget."),
    (["NO_COLOR"], "Anything: no colours."),
]


class Page(Protocol):
    """The parts of a page, from title to end. Text has `code` in backticks, and empty lines between paragraphs."""

    def title(self, name: str, purpose: str) -> None: ...
    def section(self, title: str) -> None: ...
    def command(self, name: str, usage: str) -> None: ...
    def text(self, text: str) -> None: ...
    def entries(self, terms: Sequence[str], text: str) -> None: ...
    def see(self, pages: Iterable[str]) -> None: ...


def daemon_page(page: Page) -> None:
    """hippod(8)."""
    context = click.Context(hippod, info_name="hippod", **hippod.context_settings)
    _head(page, "hippod", "a long-term memory for language models, as a daemon", context)
    page.section("OPTIONS")
    _options(page, context)
    page.section("UNDER SYSTEMD")
    page.text(SERVICE)
    _listed(page, "ENVIRONMENT", HIPPOD_ENVIRONMENT)
    _listed(page, "FILES", FILES)
    page.see(["hippoctl(1)", "hippod.toml(5)", "systemd.service(5)", "systemd.exec(5)"])


def worker_page(page: Page) -> None:
    """hippod-worker(8)."""
    context = click.Context(worker, info_name="hippod-worker", **worker.context_settings)
    _head(page, "hippod-worker", "reads articles for any number of hippod, and sends them as records", context)
    page.section("OPTIONS")
    _options(page, context)
    _listed(page, "ENVIRONMENT", HIPPOD_ENVIRONMENT)
    page.see(["hippod(8)", "hippod.toml(5)"])


def backfill_page(page: Page) -> None:
    """hippod-backfill(8)."""
    context = click.Context(backfill, info_name="hippod-backfill", **backfill.context_settings)
    _head(page, "hippod-backfill", "reads a pile of documents on a Ray cluster into files of records", context)
    page.section("OPTIONS")
    _options(page, context)
    _listed(page, "ENVIRONMENT", HIPPOD_ENVIRONMENT)
    page.see(["hippoctl(1)", "hippod-worker(8)", "hippod.toml(5)"])


def client_page(page: Page) -> None:
    """hippoctl(1), with every command."""
    context = click.Context(hippoctl, info_name="hippoctl", **hippoctl.context_settings)
    _head(page, "hippoctl", "ask, feed and tend a running hippod", context)
    page.section("OPTIONS")
    _options(page, context)
    page.section("COMMANDS")
    _commands(page, context)
    _listed(page, "ENVIRONMENT", HIPPOCTL_ENVIRONMENT)
    page.see(["hippod(8)", "hippod.toml(5)"])


def _commands(page: Page, context: click.Context) -> None:
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        page.command(inner.command_path.partition(" ")[2], _usage(inner))
        page.text(_help(command))
        _options(page, inner)
        if isinstance(command, click.Group):
            _commands(page, inner)


def _head(page: Page, name: str, purpose: str, context: click.Context) -> None:
    page.title(name, purpose)
    page.section("SYNOPSIS")
    page.text(f"`{_usage(context)}`")
    page.section("DESCRIPTION")
    page.text(_help(context.command))


def _usage(context: click.Context) -> str:
    return " ".join([context.command_path, *context.command.collect_usage_pieces(context)])


def _help(command: click.Command) -> str:
    # "\b" keeps line breaks; text after "\f" is not shown in --help (both are click's).
    return cleandoc(re.sub(r"(?m)^\s*\x08\n", "", (command.help or "").split("\f")[0]))


def _options(page: Page, context: click.Context) -> None:
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        # The synopsis contains the arguments, for which click has no text.
        if record is not None and record[1]:
            page.entries([record[0]], record[1])


def _listed(page: Page, title: str, entries: list[tuple[list[str], str]]) -> None:
    page.section(title)
    for terms, text in entries:
        page.entries(terms, text)


@dataclass
class Keys:
    """Settings that share one comment, as written in `config.toml`: `key = default`."""

    comment: str
    lines: list[str] = field(default_factory=list)


@dataclass
class Table:
    """A section: the comment above it, and its settings."""

    header: str
    comment: str
    keys: list[Keys] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.header.strip("[]")


def read_explained(text: str) -> tuple[str, list[Table]]:
    """Parses `config.toml`: its first comment, then its tables. A line "#name = value" is a setting at its default."""
    first, tables, comment = "", list[Table](), list[str]()
    keys: Keys | None = None
    for raw in text.splitlines():
        setting = re.match(r"#?([a-z_]+) = ", raw)
        header = re.match(r"#?(\[\[?[a-z.]+\]\]?)$", raw)
        if header is not None:
            tables.append(Table(header[1], " ".join(comment)))
            comment, keys = [], None
        elif setting is not None and tables:
            if comment or keys is None:
                keys = Keys(" ".join(comment))
                tables[-1].keys.append(keys)
                comment = []
            keys.lines.append(raw.removeprefix("#"))
        elif raw.startswith("# ") or raw == "#":
            comment.append(raw[2:])
        elif not raw and comment and not tables and not first:
            first, comment = "\n".join(comment), []
    return first, tables


def configuration_page(page: Page) -> None:
    """hippod.toml(5), from `config.toml` and the model of the configuration."""
    first, tables = read_explained((ROOT / "config.toml").read_text("utf-8"))
    said = docstrings()
    page.title("hippod.toml", "the configuration of hippod")
    page.section("DESCRIPTION")
    page.text(
        "hippod reads one file in TOML: the one that `--config` names, else that of `$HIPPOD_CONFIG`, else "
        "`$XDG_CONFIG_HOME/hippod/config.toml`, else `/etc/hippod/config.toml`. `hippod --check` says what is wrong with it "
        "and prints what is in force. Settings are shown with their defaults."
    )
    page.text(" ".join(_sentences(first)))
    for table in tables:
        page.section(table.header)
        page.text(table.comment)
        for keys in table.keys:
            for number, written in enumerate(keys.lines):
                name, _, value = written.partition(" = ")
                allowed = _allowed(table.name, name)
                # A comment above several settings is printed below the last of them; the others get the model's text.
                last = number == len(keys.lines) - 1
                text = (keys.comment if last else "") or said.get((table.name, name), "")
                page.entries([_default(table.name, name, value)], "\n\n".join(part for part in (allowed, text) if part))
    _listed(page, "FILES", FILES)
    page.see(["hippod(8)", "hippoctl(1)", "systemd.exec(5)"])


def docstrings() -> dict[tuple[str, str], str]:
    """Returns the model's texts for its settings, by table and key: the string below each field in the source."""
    modules = {getmodule(field_at([name, "-"])[0]) for name in Config.model_fields} | {sections}
    classes = {
        node.name: node
        for module in modules
        if module is not None
        for node in ast.parse(getsource(module)).body
        if isinstance(node, ast.ClassDef)
    }
    found = {}
    for name in Config.model_fields:
        known = [classes[each.__name__] for each in field_at([name, "-"])[0].__mro__ if each.__name__ in classes]
        for field_, text in (pair for each in known for pair in pairwise(each.body)):
            if (
                isinstance(field_, ast.AnnAssign)
                and isinstance(field_.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[name, field_.target.id] = str(text.value.value)
    return found


def _sentences(first: str) -> list[str]:
    """Returns the first comment without the sentences about the file itself."""
    text = " ".join(first.split())
    start = text.find("Relative paths")
    return [text[start:] if start >= 0 else text]


def _default(table: str, key: str, written: str) -> str:
    """Returns `key = default`; paths that `config.toml` sets for a checkout get the default of the model."""
    field_ = field_at([*table.split("."), key])[1]
    default = None if field_ is None else field_.get_default(call_default_factory=True)
    if isinstance(default, Path):
        return f'{key} = "{default}"'
    if field_ is not None and field_.is_required():
        return f"{key} = {written} (required)"
    return f"{key} = {written}"


def _allowed(table: str, key: str) -> str:
    """Returns the allowed values if the model has a short answer: a choice of words or a range of numbers."""
    found = field_at([*table.split("."), key])[1]
    if found is None:
        return ""
    kind: Any = found.annotation
    words = [choice for choice in get_args(kind) if isinstance(choice, str)]
    if words:
        return "One of " + ", ".join(f'"{word}"' for word in words) + "."
    if kind in (int, float):
        said = _number(found)
        return said[0].upper() + said[1:] + "." if any(char.isdigit() for char in said) else ""
    return ""


PAGES: list[tuple[str, int, str, Callable[[Page], None]]] = [
    ("hippod", 8, "System administration", daemon_page),
    ("hippod-backfill", 8, "System administration", backfill_page),
    ("hippod-worker", 8, "System administration", worker_page),
    ("hippoctl", 1, "User commands", client_page),
    ("hippod.toml", 5, "File formats", configuration_page),
]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, section, manual, write in PAGES:
        page = roff.Page(name, section, VERSION, manual)
        write(page)
        (folder / f"{name}.{section}").write_text(str(page), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
