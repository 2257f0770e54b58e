"""hippod as `make install` installs it: complete without extras, and says what the extra `multilingual` would improve."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.openie.rules.extractor import RulesExtractor
from tests.e2e.conftest import Hippo
from tests.e2e.real_hippod import Daemon, clean_environment, until
from tests.plain_environment import missing_modules, plain_environment, run

pytestmark = [pytest.mark.process, pytest.mark.slow]

PLAIN, TAGGED = RulesExtractor.name, RulesExtractor.tagged_name
UNTAGGED = TAGGED.replace("+", "-")
GERMAN = "Hier wohnt Emil Strand mit seiner Katze am Hafen von Rostock. Das Haus {} verkaufte er an Nadja Ferrol."
JAPANESE = "田中花子は大阪で働いた。《源氏物語》は紫式部の作品。レオナルド・ダ・ヴィンチは画家である。その{}。"
ENGLISH = "Odile Brandt built the gauge {} in Aldersund."
FILES = 100
"""Of each language; enough for the log's check of languages."""
LANGUAGES = {"de": GERMAN, "ja": JAPANESE, "en": ENGLISH}
TEXTS = {f"{code}{n}": text.format(n) for code, text in LANGUAGES.items() for n in range(FILES)}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield plain_environment(tmp_path_factory.mktemp("plain") / "venv")


def test_modules_import_without_extras_except_the_extras_themselves(python: Path) -> None:
    assert missing_modules(python) == {"HanTa", "igraph", "ray", "sentence_transformers", "sudachipy", "torch", "vllm"}


@pytest.mark.parametrize("command", [("graph", "Who?", "--png"), ("show", "trace.json", "--html")])
def test_graph_and_trace_drawing_without_the_extra_names_it(
    python: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    step = {"number": 1, "query": "Who?", "found": [], "new": [], "passages": []}
    trace = {"question": "Who?", "answer": "", "answerer": "iterative", "steps": [step], "citations": [], "took_ms": 1}
    (tmp_path / "trace.json").write_text(json.dumps(trace | {"tokens": {"prompt": 0, "completion": 0}}))
    words: list[str | Path] = [python, "-m", "cli.main", *command, tmp_path / "drawn"]
    drawn = subprocess.run(words, cwd=tmp_path, env=clean_environment(tmp_path), capture_output=True, text=True)
    assert drawn.returncode == 1
    assert "hippod[graph]" in drawn.stderr and "make install EXTRAS=graph" in drawn.stderr
    assert not (tmp_path / "drawn").exists()


@pytest.mark.daemon
def test_reextract_after_installing_taggers_equals_a_fresh_build(hippo: Hippo, python: Path) -> None:
    daemon = hippo()
    for name, text in TEXTS.items():
        daemon.write(f"{name}.md", text)
    status = start_with(python, daemon).wait()
    assert {each["name"]: each["passages"] for each in status["extractors"]} == {PLAIN: FILES, UNTAGGED: 2 * FILES}
    assert all(each.get("left_s") is None for each in status["extractors"])
    assert "names in de and ja" in status["extractor_advice"] or "names in ja and de" in status["extractor_advice"]
    assert "make install EXTRAS=multilingual" in status["extractor_advice"]
    assert daemon.stop() == 0
    start_with(python, daemon)
    assert "make install EXTRAS=multilingual" in daemon.events("taggers_missing")[-1]["hint"]
    checks = {check["detail"]: check for check in daemon.ctl("--json", "doctor").json["checks"]}
    assert any("lacks taggers" in detail and check["status"] == "warn" for detail, check in checks.items())
    assert daemon.ctl_json("reextract", "--dry-run")["passages"] == 0, "nothing can be improved without the extra"
    assert daemon.ask("POST", "/v1/verify", json={"against_fresh_build": 20})["problems"] == []
    assert daemon.stop() == 0

    daemon.start().wait()
    status = daemon.status()
    assert "extractor_advice" not in status
    assert {each["name"]: "left_s" in each for each in status["extractors"]} == {PLAIN: False, UNTAGGED: True}
    assert daemon.ctl_json("reextract")["requeued"] == 2 * FILES
    until(lambda: {each["name"] for each in daemon.status()["extractors"]} == {PLAIN, TAGGED}, "read again")
    daemon.wait()
    assert daemon.export() == fresh_export(hippo)


def start_with(python: Path, daemon: Daemon) -> Daemon:
    with daemon.log.open("ab") as log:
        command = [str(python), "-m", "daemon.main", "--config", str(daemon.config)]
        daemon.process = subprocess.Popen(command, env=clean_environment(daemon.home), cwd=daemon.home, stderr=log)
    return daemon.wait_ready()


def fresh_export(hippo: Hippo) -> list[str]:
    daemon: Daemon = hippo("fresh")
    for name, text in TEXTS.items():
        daemon.write(f"{name}.md", text)
    daemon.start().wait()
    return daemon.export()


def test_names_are_found_without_taggers(python: Path) -> None:
    code = f"""
from memory.openie.rules.extractor import RulesExtractor
from store.types import PassageText
for text in {[GERMAN, JAPANESE, ENGLISH]!r}:
    [found] = RulesExtractor().extract([PassageText("p", "42", text)])
    print(found.extractor, *found.entities, sep="|")
"""
    german, japanese, english = (set(line.split("|")) for line in run(python, "-c", code).splitlines())
    assert {UNTAGGED, "emil strand", "nadja ferrol"} <= german
    assert {"katze", "hafen", "das haus"}.isdisjoint(german), "in German, every noun has a capital"
    assert {UNTAGGED, "源氏物語", "レオナルド ダ ヴィンチ"} <= japanese
    assert {PLAIN, "odile brandt"} <= english
