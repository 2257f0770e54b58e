"""Each OpenIE backend and each encoder is declared once: the registries are light, and the docs name all that they hold."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from memory.encoder.registry import ENCODER_BACKENDS
from memory.openie.registry import OPENIE_BACKENDS, WORKER_BACKENDS
from store.types import PassageText

ROOT = Path(__file__).parents[3]
HEAVY = (
    "openvino",
    "torch",
    "sentence_transformers",
    "transformers",
    "openai",
    "httpx2",
    "vllm",
    "lancedb",
    "pyarrow",
    "numpy",
)


@pytest.mark.process
@pytest.mark.parametrize("module", ["memory.openie.registry", "memory.encoder.registry"])
def test_a_registry_imports_nothing_heavy(module: str) -> None:
    script = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == "[]"


def test_extractor_names_differ_between_rules_and_models() -> None:
    names = {name: backend.extractor_name("some-model") for name, backend in OPENIE_BACKENDS.items()}
    assert names["rules"].startswith("rules/")
    assert names["llm"] == names["vllm"], "the same model reads the same, whichever way it runs: nothing is read anew"
    assert names["llm"] != names["rules"]


def test_earlier_versions_of_the_rules_and_those_with_other_extras_are_outdated() -> None:
    rules = WORKER_BACKENDS["rules"]
    family, _, version = rules.extractor_name("").rpartition("/")
    plain, present = rules.present_names("")
    assert plain == f"{family}/{version}" and present == f"{plain}+multilingual"
    outdated = (f"{family}/1", f"{family}/{int(version) - 1}+multilingual", f"{plain}-multilingual")
    assert all(map(rules.is_outdated, outdated))
    others = (
        plain,
        present,
        f"{family}/{int(version) + 1}",
        f"{family}/{int(version) + 1}-multilingual",
        "rules",
        "rules/",
        "llm/m/1",
        "llm/rules/1",
        "",
        "1",
    )
    assert not any(map(rules.is_outdated, others))


@pytest.mark.parametrize("backend", WORKER_BACKENDS.values(), ids=lambda backend: backend.name)
def test_a_worker_backend_extracts_under_its_name(backend) -> None:
    passage = PassageText("p", "Mara Quill", "Mara Quill built the tide gauge in Tarn Harbour.")
    (found,) = backend.make().extract([passage])
    assert found.extractor == backend.extractor_name("")
    assert found.triples


@pytest.mark.parametrize(
    ("heading", "backends"),
    [("OpenIE backends", OPENIE_BACKENDS), ("Encoder backends", ENCODER_BACKENDS)],
    ids=["openie", "encoder"],
)
def test_the_docs_list_every_backend_with_its_summary(heading: str, backends) -> None:
    text = (ROOT / "docs" / "how-to" / "models.md").read_text()
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^- `([^`]+)`: (.+)$", section, re.M))
    assert rows == {name: backend.summary for name, backend in backends.items()}


@pytest.mark.parametrize(
    ("section", "backends"), [("openie", OPENIE_BACKENDS), ("encoder", ENCODER_BACKENDS)], ids=["openie", "encoder"]
)
def test_the_commented_configuration_names_every_backend(section: str, backends) -> None:
    before, _, _ = (ROOT / "config.toml").read_text().partition(f"[{section}]\n")
    comment = before.rsplit("\n\n", 1)[-1]
    assert all(f'"{name}"' in comment for name in backends)
