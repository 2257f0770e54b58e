"""Which build of torch is installed, from where, and what is said of it: by pip itself, of a package that is made here."""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "systemd" / "package" / "torch_install.py"
VERSION = "0.0.1"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hippod_torch_install", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel(folder: Path, version: str) -> Path:
    """A package that is called torch and holds one line."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"torch-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torch.py", f"__version__ = {version!r}\n")
        note = f"torch-{version}.dist-info"
        archive.writestr(f"{note}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        archive.writestr(
            f"{note}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{note}/RECORD", f"torch.py,,\n{note}/METADATA,,\n{note}/WHEEL,,\n{note}/RECORD,,\n")
    return path


def install(tmp_path: Path, index: str, *options: str) -> tuple[str, str]:
    """What was said, and the version that was installed."""
    target = tmp_path / "target"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ |= {"TORCH_INDEX": index, "PIP_CONFIG_FILE": os.devnull}
    command = [sys.executable, SCRIPT, f"torch=={VERSION}", "--target", str(target), *options]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout, (target / "torch.py").read_text().split("'")[1]


@pytest.mark.process
def test_without_a_gpu_the_processors_build_comes_from_the_named_index(tmp_path: Path, script: ModuleType) -> None:
    if script.has_gpu():
        pytest.skip("this machine has an NVIDIA GPU")
    file = wheel(tmp_path / "index" / "torch", f"{VERSION}+cpu")
    (file.parent / "index.html").write_text(f'<a href="{file.name}">{file.name}</a>')
    said, version = install(tmp_path, (tmp_path / "index").as_uri())
    assert version == f"{VERSION}+cpu"
    assert f"torch for processors, {script.CPU_SIZE}, from TORCH_INDEX" in said


@pytest.mark.process
def test_an_index_that_is_away_costs_a_moment_and_a_line(tmp_path: Path, script: ModuleType) -> None:
    if script.has_gpu():
        pytest.skip("this machine has an NVIDIA GPU")
    file = wheel(tmp_path / "wheels", f"{VERSION}+cpu")
    said, version = install(tmp_path, "http://127.0.0.1:9/whl/cpu", "--no-index", "--find-links", str(file.parent))
    assert version == f"{VERSION}+cpu"
    assert "TORCH_INDEX gives no answer" in said
    assert "from a file of this machine" in said


def test_what_is_there_is_not_installed_again(script: ModuleType) -> None:
    from importlib.metadata import version

    here = version("torch").partition("+")[0]
    assert script.is_installed(f"torch=={here}")
    assert not script.is_installed("torch==0.0.1")
    assert not script.is_installed("no-such-distribution==1")
    assert script.main(f"torch=={here}", ["--no-such-option"]) == 0


@pytest.mark.parametrize("index", ["ftp://127.0.0.1/", "nonsense", "file:///no/such/folder", "http://127.0.0.1:9/"])
def test_an_index_that_cannot_be_asked_says_why(script: ModuleType, index: str) -> None:
    assert script.silent(index)
