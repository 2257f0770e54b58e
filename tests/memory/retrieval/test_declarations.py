"""A mode and a setting are each declared once: everything that names them agrees with the declaration."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from daemon.config.sections import Retrieval
from daemon.contract.query import Mode, RetrievalOverrides
from daemon.page.routes import _page_template
from memory.encoder import make_encoder
from memory.retrieval import modes
from memory.retrieval.modes import DEFAULT_MODE, MODES
from memory.retrieval.query_context import QueryContext
from memory.retrieval.settings import SETTINGS, RetrievalSettings, Setting
from store.store import Store
from tests.memory.retrieval.test_modes import MEMORIES
from tests.memory.retrieval.test_reference import commit

ROOT = Path(__file__).parents[3]
ENCODER = make_encoder("hash", "64", 64, "cpu")
QUERY = "Who trained the builder of the Heron gauge?"
HEAVY = ("numpy", "scipy", "lancedb", "pyarrow", "openvino")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    with Store(tmp_path_factory.mktemp("memory") / "store", ENCODER.identity) as opened:
        commit(opened, {f"file:///{at}": each for at, each in enumerate(MEMORIES["several"])})
        yield opened


class RecordedSettings:
    """`RetrievalSettings` that remember which of them were read."""

    def __init__(self, **changed: Any) -> None:
        self.read: set[str] = set()
        self._settings = RetrievalSettings(**changed)

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        return getattr(self._settings, name)


def test_every_file_of_the_modes_is_registered() -> None:
    files = {path.stem for path in Path(modes.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == {mode.module for mode in MODES.values()}
    assert DEFAULT_MODE in MODES


@pytest.mark.process
def test_clients_load_the_declarations_without_numpy_and_the_store() -> None:
    code = """
import importlib, json, pkgutil, sys
import cli.commands, cli.main, daemon.contract, daemon.contract.query
for module in pkgutil.walk_packages(cli.commands.__path__, "cli.commands."):
    importlib.import_module(module.name)
assert {"memory.retrieval.modes", "memory.retrieval.settings"} <= set(sys.modules)
print(json.dumps(sorted(sys.modules)))
"""
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    loaded = {name.split(".")[0] for name in json.loads(out)}
    assert "click" in loaded
    assert not loaded & {*HEAVY, "store"}


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_needs_what_it_declares(store: Store, mode: str) -> None:
    context = QueryContext(store.snapshot(), ENCODER, QUERY, RetrievalSettings())
    ranking = MODES[mode].rank(context)
    assert (ranking.pagerank is not None) is MODES[mode].walks_graph
    assert ("encode" in context.stages_ms) is MODES[mode].needs_encoder


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_reads_the_settings_that_name_it(store: Store, mode: str) -> None:
    settings = RecordedSettings()
    MODES[mode].rank(QueryContext(store.snapshot(), ENCODER, QUERY, settings))  # type: ignore[arg-type]
    assert settings.read == {name for name, setting in SETTINGS.items() if mode in setting.modes}


def test_the_contract_and_the_configuration_have_every_mode_and_no_other() -> None:
    assert [mode.value for mode in Mode] == list(MODES)
    for mode in MODES:
        assert Retrieval(mode=mode).mode == mode
    with pytest.raises(ValidationError):
        Retrieval(mode="magic")
    assert Retrieval().mode == DEFAULT_MODE


def beyond(setting: Setting) -> list[Any]:
    """A value outside each bound."""
    bounds = setting.bounds
    step = 1 if setting.kind is int else 0.001
    below = [bounds["ge"] - step] if "ge" in bounds else [bounds["gt"]]
    return [*below, bounds["le"] + step]


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_contract_and_configuration_enforce_the_bounds_of_each_setting(setting: Setting) -> None:
    assert Retrieval.model_fields[setting.name].default == setting.default
    assert RetrievalOverrides.model_fields[setting.name].default is None
    assert getattr(Retrieval(**{setting.name: setting.default}), setting.name) == setting.default
    assert RetrievalOverrides(**{setting.name: setting.default}).model_dump()[setting.name] == setting.default
    wrong = ["magic"] if setting.choices else [2] if setting.kind is bool else beyond(setting)
    for value in wrong:
        for model in (Retrieval, RetrievalOverrides):
            with pytest.raises(ValidationError):
                model.model_validate({setting.name: value})


def test_the_contract_has_no_other_setting() -> None:
    assert list(RetrievalOverrides.model_fields) == list(SETTINGS)


def completions(*words: str) -> list[str]:
    """What zsh is offered for the last word: each candidate with its description."""
    asked = {"COMP_WORDS": " ".join(("hippoctl", *words)), "COMP_CWORD": str(len(words))}
    out = subprocess.run(
        [sys.executable, "-m", "cli.main"],
        cwd=ROOT,
        env={**os.environ, **asked, "_HIPPOCTL_COMPLETE": "zsh_complete"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    return [f"{word} {said}" for word, said in zip(out[1::3], out[2::3], strict=True)]


@pytest.mark.process
@pytest.mark.parametrize("command", ["query", "eval", "graph"])
def test_shell_completion_lists_modes_with_summaries(command: str) -> None:
    assert completions(command, "--mode", "hippo") == [
        f"{mode.name} {mode.summary}" for mode in MODES.values() if mode.name.startswith("hippo")
    ]


@pytest.mark.process
def test_shell_completion_lists_settings_with_meanings_and_values() -> None:
    told = completions("query", "--set", "passage_")
    expected = [each for each in SETTINGS.values() if each.name.startswith("passage_")]
    assert told == [f"{setting.name}= {setting.meaning}".replace(":", r"\:") for setting in expected]
    assert [each.split()[0] for each in completions("query", "--set", "passage_nodes=")] == [
        "passage_nodes=true",
        "passage_nodes=false",
    ]
    walks = [f"walk={choice}" for choice in SETTINGS["walk"].choices]
    assert [each.split()[0] for each in completions("query", "--set", "walk=")] == walks


def test_the_page_offers_every_mode() -> None:
    options = re.search(r'<select id="mode">(.*?)</select>', _page_template(), re.S)
    assert options
    assert re.findall(r"<option[^>]*>([^<]*)</option>", options[1])[1:] == list(MODES)


def test_the_commented_configuration_explains_every_setting_and_names_every_mode() -> None:
    text = (ROOT / "config.toml").read_text()
    section = text[text.index("[retrieval]") :]
    for setting in SETTINGS.values():
        comment = re.search(rf"((?:^# .*\n)+)^#{setting.name} = ", section, re.M)
        assert comment, setting.name
        assert setting.meaning in " ".join(comment[1].replace("\n#", "\n").lstrip("#").split()), setting.name
    before = " ".join(re.findall(r"(?:^#.*\n)+(?=\[retrieval\])", text, re.M)[0].replace("\n#", " ").split())
    for mode in MODES.values():
        assert f'"{mode.name}": {mode.summary}' in before, mode.name


def all_but(modes_without: list[str], do: str) -> str:
    return f"ll but {' and '.join(f'`{name}`' for name in modes_without)} {do}"


def test_the_docs_list_every_mode() -> None:
    text = (ROOT / "docs" / "explanation" / "retrieval.md").read_text()
    listed = re.findall(r"^- (`.+)", text.partition("\n## Modes\n")[2].partition("\n## ")[0], re.M)
    assert listed == [f"`{mode.name}`: {mode.summary}" for mode in MODES.values()]
    assert all_but([mode.name for mode in MODES.values() if not mode.needs_encoder], "need the encoder") in text
    assert all_but([mode.name for mode in MODES.values() if not mode.walks_graph], "walk the graph") in text
