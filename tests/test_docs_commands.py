"""Commands, options, settings, routes and metrics that the documentation names exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli.command_line import hippoctl
from daemon.config import Config
from daemon.config.messages import field_at
from daemon.contract.http.routes import Route
from daemon.observe.metrics import REGISTRY

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/README.md")])
# A program that is given `hippoctl` as an argument has options of its own.
QUOTED = re.compile(r"`([^`\n]+)`|^\$ (.*)$", re.MULTILINE)
COMMAND = re.compile(
    r"(?:^|[;&|(] ?|sudo |/bin/)hippoctl((?: --(?:socket|json)(?: \S+)?)*) ([a-z][a-z-]*)((?:\s+[^|;&`]+)?)"
)
OPTION = re.compile(r"(?<=\s)(--[a-z][a-z-]*)")
SETTING = re.compile(r"`\[+([a-z]+)\]+ ([a-z_]+)[`\s=]")
ROUTE = re.compile(r"`(?:(?:GET|POST|DELETE) )?(/(?:v1/[a-z/-]*[a-z]|healthz|metrics|openapi\.json))\b")
METRIC = re.compile(r"`(hippod_[a-z_]+)(?:\{[^`]*\})?`")
SERIES = ("", "_total", "_bucket", "_sum", "_count")
"""Endings of the series of a metric."""


def quoted(page: Path) -> Iterator[str]:
    for inline, line in QUOTED.findall(page.read_text("utf-8")):
        yield inline or line


def unknown_commands(text: str) -> list[str]:
    wrong = []
    for _, name, rest in COMMAND.findall(text):
        command = hippoctl.get_command(click.Context(hippoctl), name)
        if command is None:
            wrong.append(f"hippoctl {name}")
            continue
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        if isinstance(command, click.Group):
            for each in command.commands.values():
                known |= {option for parameter in each.params for option in parameter.opts}
        known |= {option for parameter in hippoctl.params for option in parameter.opts} | {"--help"}
        wrong += [f"hippoctl {name} {option}" for option in OPTION.findall(rest) if option not in known]
    return wrong


def unknown_settings(text: str) -> list[str]:
    wrong = []
    for section, key in SETTING.findall(text):
        if section not in Config.model_fields or key not in field_at([section, "-"])[0].model_fields:
            wrong.append(f"[{section}] {key}")
    return wrong


def unknown_routes(text: str) -> list[str]:
    known = {str(route).partition("{")[0].rstrip("/") for route in Route}
    return [path for path in ROUTE.findall(text) if path not in known]


def unknown_metrics(text: str) -> list[str]:
    known = {f"{metric.name}{ending}" for metric in REGISTRY.collect() for ending in SERIES}
    return [name for name in METRIC.findall(text) if name not in known]


def test_check_reports_unknown_commands_settings_routes_and_metrics() -> None:
    assert unknown_commands("hippoctl query TEXT -k 2 --explain") == []
    assert unknown_commands("hippoctl qwery TEXT") == ["hippoctl qwery"]
    assert unknown_commands("hippoctl --socket S query TEXT --exact") == ["hippoctl query --exact"]
    assert unknown_settings('`[api] socket`, `[[folder]] path = "x"`') == []
    assert unknown_settings("`[api] sockets`") == ["[api] sockets"]
    assert unknown_routes("`POST /v1/query`, `/v1/documents/{uri}`, `POST /v1/qwery`") == ["/v1/qwery"]
    assert unknown_metrics("`hippod_kafka_lag{topic, partition}`, `hippod_commits_total`, `hippod_comits`") == [
        "hippod_comits"
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_option_setting_route_and_metric_of_a_page_exists(page: Path) -> None:
    assert [wrong for text in quoted(page) for wrong in unknown_commands(text)] == []
    assert unknown_settings(page.read_text("utf-8")) == []
    assert unknown_routes(page.read_text("utf-8")) == []
    assert unknown_metrics(page.read_text("utf-8")) == []
