"""The site of the documentation: what `make docs` hands to Sphinx is whole, and its reference says what the code says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli.command_line import hippoctl
from daemon.config import Config
from daemon.config.messages import field_at
from daemon.contract.http.routes import Route
from docs.site import assemble
from docs.site.markdown import MarkdownPage, cell
from tests.markdown_links import broken

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's sources."""
    folder = tmp_path_factory.mktemp("site")
    assemble.assemble(folder)
    return folder


def test_every_link_of_the_site_leads_to_a_page_of_it_or_to_a_file(site: Path) -> None:
    pages = sorted(site.rglob("*.md"))
    assert len(pages) > 20
    assert broken(pages, Path("/")) == []
    assert (site / "files/systemd/drop-ins/drive.conf").read_bytes() == (
        ROOT / "systemd/drop-ins/drive.conf"
    ).read_bytes()


def test_every_page_of_a_kind_is_in_its_index(site: Path) -> None:
    for kind in assemble.KINDS:
        index = (ROOT / "docs" / kind / "index.md").read_text("utf-8")
        for page in (ROOT / "docs" / kind).glob("*.md"):
            assert page.name == "index.md" or f"]({page.name})" in index, page
        listed = re.findall(r"(?ms)^```{toctree}.*?\n\n(.*?)```", (site / kind / "index.md").read_text("utf-8"))
        here = {page.name for page in (site / kind).glob("*.md")} - {"index.md"}
        assert [set(names.split()) for names in listed] == [here]


def test_site_build_rewrites_links_outside_code_only(site: Path) -> None:
    assert "](../explanation/security.md)" in (site / "tutorials/agent.md").read_text("utf-8")
    assert "](configuration.md)" in (site / "reference/index.md").read_text("utf-8")
    inside = "".join(
        part for part in assemble.FENCED.split((ROOT / "README.md").read_text("utf-8")) if part[:3] == "```"
    )
    assert "docs/" not in inside


def _commands(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                yield from _commands(click.Context(command, info_name=name, parent=context))


def test_the_reference_has_every_command_with_its_options(site: Path) -> None:
    text = (site / "reference/hippoctl.md").read_text("utf-8")
    for context in _commands(click.Context(hippoctl, info_name="hippoctl")):
        name = context.command_path.partition(" ")[2]
        section = text if not name else text.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
        assert section, name
        for parameter in context.command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and record[1]:
                assert f"`{record[0]}`\n: " in section, (name, record[0])


def test_the_reference_has_every_setting(site: Path) -> None:
    text = (site / "reference/configuration.md").read_text("utf-8")
    sections = [*Config.model_fields, "llm.judge"]
    for section in sections:
        for key in field_at([*section.split("."), "-"])[0].model_fields:
            if f"{section}.{key}" in sections:
                continue
            table = re.search(rf"(?ms)^## `\[+{section}\]+`\n(.*?)(?=^## |\Z)", text)
            assert table is not None, section
            assert re.search(rf"(?m)^`+ ?{key} = .*\n: ", table[1]), (section, key)


def test_the_reference_has_every_route_and_type(site: Path) -> None:
    text = (site / "reference/http-api.md").read_text("utf-8")
    document = json.loads((site / "reference/openapi.json").read_text("utf-8"))
    assert {str(route) for route in Route} <= set(document["paths"]) | {"/mcp"}
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"### `{method.upper()} {path}`" in text
    for name, schema in document["components"]["schemas"].items():
        section = text.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
        assert section, name
        for field in schema.get("properties", {}):
            assert f"| `{field}`" in section, (name, field)


def test_text_taken_from_code_is_escaped_in_markdown() -> None:
    page = MarkdownPage()
    page.text("Read [x](y) of <b> and `a_b|c`, a_b_c *d*.")
    assert str(page) == "Read \\[x\\](y) of \\<b\\> and `a_b|c`, a\\_b\\_c \\*d\\*.\n"
    assert cell("`a|b`\nc \\| d") == "`a\\|b` c \\| d"
