"""The manual pages say all that `--help` and the configuration's model say, and the package holds what it must."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePath

import click
import pytest

from cli.command_line import hippoctl
from daemon.backfill_main import main as backfill
from daemon.config import Config
from daemon.config.messages import field_at
from daemon.main import main as hippod
from daemon.worker_main import main as worker

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "systemd" / "package"
ROOMS = ("consumers", "memory", "store", "daemon", "cli")
PAGES = ("hippod.8", "hippod-backfill.8", "hippod-worker.8", "hippoctl.1", "hippod.toml.5")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, made as `make deb` makes them."""
    folder = tmp_path_factory.mktemp("man")
    done = subprocess.run([sys.executable, PACKAGE / "manual.py", folder], capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in folder.iterdir()) == sorted(PAGES)
    return folder


def words(text: str) -> str:
    """A page, or what it should hold, without macros, escapes and line breaks."""
    text = re.sub(r"\\f[BR]|\\&|(?m:^\.\w+ ?)", "", text).replace(r"\-", "-").replace(r"\e", "\\")
    for escape, sign in ((r"\(dq", '"'), (r"\(aq", "'"), (r"\(ga", "`"), (r"\(ti", "~"), (r"\(ha", "^")):
        text = text.replace(escape, sign)
    return " ".join(text.replace("`", "").split())


def commands(context: click.Context) -> Iterator[click.Context]:
    """A command and all below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                yield from commands(click.Context(command, info_name=name, parent=context))


@pytest.mark.parametrize(
    ("page", "name", "command"),
    [
        ("hippod.8", "hippod", hippod),
        ("hippod-backfill.8", "hippod-backfill", backfill),
        ("hippod-worker.8", "hippod-worker", worker),
        ("hippoctl.1", "hippoctl", hippoctl),
    ],
)
def test_every_command_and_option_is_in_its_page_with_the_text_of_help(
    pages: Path, page: str, name: str, command: click.Command
) -> None:
    written = words((pages / page).read_text())
    found = list(commands(click.Context(command, info_name=name, **command.context_settings)))
    for context in found:
        assert context.command_path in written
        first = " ".join((context.command.help or "").split("\n\n")[0].split())
        assert first
        assert words(first) in written
        for parameter in context.command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and record[1]:
                assert words(f"{record[0]} {record[1]}") in written, (context.command_path, record)
    assert len(found) == (len(list(commands(click.Context(hippoctl)))) if name == "hippoctl" else 1)


def test_every_section_and_key_is_in_the_page_of_the_configuration(pages: Path) -> None:
    page = (pages / "hippod.toml.5").read_text()
    sections = dict(re.findall(r'(?ms)^\.SH "\[\[?([a-z.]+)\]\]?"\n(.*?)(?=^\.SH )', page))
    assert [name for name in sections if "." not in name] == list(Config.model_fields)
    for name, text in sections.items():
        table = field_at([*name.split("."), "-"])[0]
        keys = re.findall(r"(?m)^\\fB([a-z_]+) = ", text)
        parts = {each.removeprefix(f"{name}.") for each in sections if each.startswith(f"{name}.")}
        assert sorted(keys) == sorted(table.model_fields.keys() - parts), name
        # Keys that belong together have their text under the last of them; the last of all must have one.
        assert not re.search(r"\.TP\n[^\n]*\n?\Z", text), f"the last setting of [{name}] is explained by nothing"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_formats_every_manual_page_without_a_warning(pages: Path, name: str) -> None:
    command = ["groff", "-man", "-Tutf8", "-K", "utf8", "-ww", "-rCHECKSTYLE=3", str(pages / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) > 40


def test_text_of_a_manual_page_cannot_become_a_roff_request() -> None:
    sys.path.insert(0, str(PACKAGE))
    try:
        from roff import Page
    finally:
        sys.path.remove(str(PACKAGE))
    page = Page("x", 1, "1", "m")
    page.text(".so /etc/passwd\n\n'ig\n\n\\fB back\\slash `.code`")
    page.entries([".SH no"], ".TH no")
    lines = str(page).splitlines()[1:]
    assert {line.split()[0] for line in lines if line.startswith((".", "'"))} == {".nh", ".ad", ".PP", ".TP"}
    assert r"\efB back\eslash \fB.code\fR" in lines


def test_every_data_file_of_a_package_is_installed() -> None:
    """`make deb` looks at what was installed; this says so earlier."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    left_out = []
    for room in ROOMS:
        for path in (ROOT / room).rglob("*"):
            if not path.is_file() or path.suffix == ".py" or "__pycache__" in path.parts:
                continue
            package = next(parent for parent in path.parents if (parent / "__init__.py").exists())
            dotted = ".".join(package.relative_to(ROOT).parts)
            inside = PurePath(path.relative_to(package))
            if not any(inside.match(glob) for glob in (*named.get("*", ()), *named.get(dotted, ()))):
                left_out.append(str(path.relative_to(ROOT)))
    assert not left_out, "name them in [tool.setuptools.package-data] of pyproject.toml"


def test_maintainer_scripts_are_valid_and_delete_no_memory() -> None:
    deleted = []
    for script in (PACKAGE / "scripts").iterdir():
        assert subprocess.run(["sh", "-n", script], capture_output=True).returncode == 0
        lines = [
            line.strip() for line in script.read_text().splitlines() if "/var/lib" in line or "/etc/hippod" in line
        ]
        deleted += [(script.name, line) for line in lines if re.match(r"(rm|find|rmdir)\b", line)]
    assert deleted == [("postrm", "rm -f /etc/hippod/config.toml")], "on purge, what postinst copied there"
