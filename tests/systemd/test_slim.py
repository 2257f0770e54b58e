"""hippod runs in an environment from which `slim` has removed all that it may: that of the Debian package and the image."""

import json
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.real_hippod import ROOT, Daemon, clean_environment
from tests.plain_environment import PACKAGES, add_extra, missing_modules, packages_of, plain_environment, run

pytestmark = [pytest.mark.process, pytest.mark.slow]
QUESTION = "Where did the founder of the rowing club grow up?"
QUESTIONS = [
    {
        "question": QUESTION,
        "paragraphs": [{"title": "Tessa Quill", "text": "Tessa Quill grew up in Harrow Ness.", "is_supporting": True}],
    }
] * 2


@pytest.fixture(scope="module")
def slim() -> Iterator[types.ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "systemd" / "package"))
        import slim

        yield slim


@pytest.fixture(scope="module")
def python(slim: types.ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("sealed")
    made = plain_environment(folder, apart=True)
    slim.slim(packages_of(folder), sealed=True)
    yield made
    shutil.rmtree(folder)


def test_slim_environment_has_every_module_except_optional_extras(python: Path) -> None:
    assert missing_modules(python) == {"HanTa", "igraph", "ray", "sentence_transformers", "sudachipy", "torch", "vllm"}


@pytest.mark.daemon
def test_hippod_in_the_slim_environment_indexes_answers_draws_and_evaluates(python: Path, tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "home", encoder={"backend": "sentence-transformers"})
    shutil.copytree(ROOT / "examples" / "drive", daemon.drive, dirs_exist_ok=True)
    daemon.write("club.md", "# Rowing club\n\nTessa Quill founded the rowing club of Marlow Bend.\n")
    daemon.write("tessa.md", "# Tessa Quill\n\nTessa Quill grew up in Harrow Ness.\n")
    ctl = ("-m", "cli.main", "--socket", daemon.socket)
    files = [tmp_path / f"graph.{kind}" for kind in ("html", "png", "graphml")]
    asked = tmp_path / "questions.json"
    asked.write_text(json.dumps(QUESTIONS))
    with closing(daemon), daemon.log.open("ab") as log:
        command = [str(python), "-m", "daemon.main", "--config", str(daemon.config)]
        environ = clean_environment(daemon.home)
        daemon.process = subprocess.Popen(command, env=environ, cwd=daemon.home, stderr=log)
        status = daemon.wait_ready().wait()
        assert status["failed"] == 0 and status["passages"] > 60
        for mode in ("fused", "hipporag2", "hipporag", "dense", "bm25"):
            found = json.loads(run(python, *ctl, "query", QUESTION, "--mode", mode, "--explain", "--json"))
            assert found["passages"], mode
        add_extra(python, "graph")
        run(python, *ctl, "graph", QUESTION, "--html", files[0], "--png", files[1], "--graphml", files[2])
        assert all(file.stat().st_size > 1000 for file in files)
        compared = json.loads(run(python, *ctl, "eval", asked, "--compare", "fused,dense", "--json"))
        assert compared["differences"]
        assert daemon.stop() == 0


def test_stripped_library_can_still_be_loaded(slim: types.ModuleType, tmp_path: Path) -> None:
    """A real library, with more bytes behind all that is loaded."""
    shutil.copytree(PACKAGES / "yaml", tmp_path / "yaml", ignore=shutil.ignore_patterns("__pycache__"))
    [library] = (tmp_path / "yaml").glob("_yaml*.so")
    before = library.stat()
    with library.open("ab") as file:
        file.write(bytes(100_000))
    slim.strip(library)
    assert library.stat().st_size <= before.st_size and library.stat().st_mode == before.st_mode
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import yaml; "
    code += "print(yaml._yaml.__file__, yaml.load('a: [1]', yaml.CSafeLoader))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == f"{library} {{'a': [1]}}\n"
    again = library.read_bytes()
    slim.strip(library)
    assert library.read_bytes() == again
    text = tmp_path / "script.so"
    text.write_text("INPUT(libx.so)")
    slim.strip(text)
    assert text.read_text() == "INPUT(libx.so)"
