"""What `make deb` assembles around the virtual environment, which a folder with a few files stands for here."""

import gzip
import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.markdown_links import broken

ROOT = Path(__file__).parents[2]
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")

FINAL = Path("/opt/hippod/versions/0.1.0-aa")

PYTHON = """#!/bin/sh
case "$2" in
*/manual.py) mkdir -p "$3"
  for page in hippod.8 hippod-backfill.8 hippod-worker.8 hippoctl.1 hippod.toml.5; do echo ".TH $page" >"$3/$page"; done ;;
*) env | grep _COMPLETE= ;;
esac
"""
"""Stands for the environment's Python: writes pages, and says which completion it was asked for."""


@pytest.fixture(scope="module")
def deb() -> ModuleType:
    """`systemd/package/deb.py`, which is a program and in no package."""
    spec = importlib.util.spec_from_file_location("hippod_deb", ROOT / "systemd" / "package" / "deb.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As for a program: Python finds the modules next to it.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "systemd" / "package"))
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    """An environment as pip leaves it, in the staging folder."""
    folder = tmp_path / "root" / "opt" / "hippod" / "package"
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib" / "module.py").write_text("x = 1\n")
    for name in ("pip", "activate", "uvicorn"):
        (folder / "bin" / name).write_text("#!/bin/sh\n")
    for name in ("hippod", "hippod-backfill", "hippod-worker", "hippoctl"):
        (folder / "bin" / name).write_text(f"#!{folder}/bin/python3.11\nimport sys\n")
    (folder / "bin" / "python3.11").symlink_to(sys.executable)
    (folder / "bin" / "python").symlink_to("python3.11")
    return folder


def stub_python(staged: Path) -> None:
    (staged / "bin" / "python").unlink()
    (staged / "bin" / "python").write_text(PYTHON)
    (staged / "bin" / "python").chmod(0o755)


@pytest.fixture
def tree(deb: ModuleType, staged: Path, tmp_path: Path) -> Path:
    """Everything beside the environment, put together."""
    stub_python(staged)
    deb.files(tmp_path / "root", tmp_path)
    return tmp_path / "root"


def test_package_keeps_only_hippods_scripts_with_the_installed_python(deb: ModuleType, staged: Path) -> None:
    deb.scripts(staged, "3.11", FINAL)
    folder = staged / "bin"
    assert {path.name for path in folder.iterdir()} == {
        "hippod",
        "hippod-backfill",
        "hippod-worker",
        "hippoctl",
        "python",
        "python3",
        "python3.11",
    }
    for name in ("hippod", "hippod-backfill", "hippod-worker", "hippoctl"):
        assert (folder / name).read_text() == f"#!{FINAL}/bin/python\nimport sys\n"
    assert str((folder / "python3.11").readlink()) == "/usr/bin/python3.11"
    assert str((folder / "python3").readlink()) == str((folder / "python").readlink()) == "python3.11"
    assert list(deb.naming(staged, str(staged))) == []


def test_a_script_that_is_not_understood_fails_the_build(deb: ModuleType, staged: Path) -> None:
    (staged / "bin" / "hippoctl").write_text("#!/bin/sh\nexec python …\n")
    with pytest.raises(deb.Cannot, match="not understood"):
        deb.scripts(staged, "3.11", FINAL)


def test_build_fails_for_missing_files_and_references_to_the_staging_folder(deb: ModuleType, tmp_path: Path) -> None:
    for room in deb.ROOMS:
        (tmp_path / "sources" / room).mkdir(parents=True)
    (tmp_path / "packages" / "cli").mkdir(parents=True)
    (tmp_path / "sources" / "cli" / "page.css").write_text("p {}")
    with pytest.raises(deb.Cannot, match=re.escape("cli/page.css")):
        deb.complete(tmp_path / "sources", tmp_path / "packages")
    shutil.copy(tmp_path / "sources" / "cli" / "page.css", tmp_path / "packages" / "cli")
    deb.complete(tmp_path / "sources", tmp_path / "packages")
    (tmp_path / "packages" / "note.json").write_text('{"url": "file:///staging/sources"}')
    assert list(deb.naming(tmp_path / "packages", "/staging")) == [tmp_path / "packages" / "note.json"]


def test_every_folder_of_code_is_a_package(deb: ModuleType) -> None:
    for room in deb.ROOMS:
        for folder in {path.parent for path in (ROOT / room).rglob("*.py")}:
            assert (folder / "__init__.py").exists(), folder


def test_a_python_that_is_not_the_distribution_s_is_refused(deb: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(deb.Cannot, match="DEB_PYTHON"):
        deb.distribution_python(tmp_path / "python3")


@pytest.mark.process
def test_units_manual_pages_completions_and_configuration_are_installed(tree: Path) -> None:
    for name in ("hippod.service", "hippod.socket", "hippod@.service", "hippod@.socket"):
        assert (tree / "usr/lib/systemd/system" / name).read_bytes() == (ROOT / "systemd" / name).read_bytes()
    for place in ("sysusers.d", "tmpfiles.d"):
        shipped = tree / "usr/lib" / place / "hippod.conf"
        assert shipped.read_bytes() == (ROOT / "systemd" / place / "hippod.conf").read_bytes()
    assert (tree / "usr/share/hippod/config.toml").read_bytes() == (ROOT / "systemd/hippod.toml").read_bytes()
    for page in (
        "man8/hippod.8",
        "man8/hippod-backfill.8",
        "man8/hippod-worker.8",
        "man1/hippoctl.1",
        "man5/hippod.toml.5",
    ):
        assert gzip.decompress((tree / f"usr/share/man/{page}.gz").read_bytes()).startswith(b".TH ")
    for name in ("hippod", "hippod-backfill", "hippod-worker", "hippoctl"):
        assert str((tree / "usr/bin" / name).readlink()) == f"/opt/hippod/current/bin/{name}"
        variable = f"_{name.upper().replace('-', '_')}_COMPLETE"
        for shell, place in {
            "bash": f"bash-completion/completions/{name}",
            "zsh": f"zsh/vendor-completions/_{name}",
            "fish": f"fish/vendor_completions.d/{name}.fish",
        }.items():
            assert f"{variable}={shell}_source" in (tree / "usr/share" / place).read_text()


@pytest.mark.process
def test_every_link_of_the_documentation_leads_somewhere_in_the_package(tree: Path) -> None:
    shipped = tree / "usr/share/doc/hippod"
    pages = sorted(path.relative_to(shipped) for path in shipped.rglob("*.md"))
    assert {"README.md", "SECURITY.md", "CHANGELOG.md", "docs/how-to/operations.md", "examples/grafana/README.md"} <= {
        str(page) for page in pages
    }
    assert broken((shipped / page for page in pages), tree) == []


@pytest.mark.process
def test_documentation_files_named_in_scripts_and_pages_are_shipped(tree: Path) -> None:
    texts = [
        *(ROOT / "systemd/package/scripts").iterdir(),
        ROOT / "docs/how-to/operations.md",
        ROOT / "systemd/hippod.toml",
    ]
    named = {
        found.rstrip(".") for text in texts for found in re.findall(r"/usr/share/doc/hippod[\w/.-]*", text.read_text())
    }
    assert any(name.endswith("drive.conf") for name in named)
    for name in named:
        assert (tree / name.lstrip("/")).exists(), name


@pytest.mark.process
@needs_dpkg
def test_maintainer_changelog_and_copyright_follow_debian_policy(deb: ModuleType, staged: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    stub_python(staged)
    deb.files(root, tmp_path)
    (staged / "bin" / "python").unlink()
    deb.scripts(staged, "3.11", FINAL)
    made = deb.close(root, tmp_path / "out", "0.1.0", "python3.11")
    shipped = root / "usr/share/doc/hippod"
    entry = gzip.decompress((shipped / "changelog.gz").read_bytes()).decode()
    assert re.fullmatch(
        r"hippod \(0\.1\.0\) unstable; urgency=medium\n\n  \* .*\n\n"
        r" -- [^<>]+ <[^<>]+>  \w{3}, \d{2} \w{3} \d{4} \d\d:\d\d:\d\d \+0000\n",
        entry,
    )
    assert not re.search(r"localhost|localdomain", deb.MAINTAINER)
    assert re.search(r"(?m)^Copyright: \d{4}, ", (shipped / "copyright").read_text())
    if shutil.which("lintian") is not None:
        done = subprocess.run(["lintian", "--allow-root", made], capture_output=True, text=True)
        found = {line.split()[2] for line in done.stdout.splitlines() if line[:2] in ("E:", "W:")}
        assert found <= {"bad-whatis-entry"}, done.stdout  # the pages are stand-ins here


def test_a_build_replaces_earlier_ones_of_its_kind_and_leaves_a_release(deb: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "0.2.0").mkdir()
    left = ["0.2.0/hippod_0.2.0_amd64.deb", "hippod_0.2.0_arm64.deb", "hippod_0.3.0~dev5+gabc_amd64.deb"]
    for name in (*left, "hippod_0.2.0_amd64.deb", "hippod_0.3.0~dev4+gdef_amd64.deb"):
        (tmp_path / name).touch()
    made = tmp_path / "hippod_0.3.0~dev5+gabc_amd64.deb"
    assert deb.only_build(made, "hippod_*_amd64.deb") == made
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == left


@pytest.mark.process
@needs_dpkg
def test_package_has_correct_fields_owners_modes_and_checksums(
    deb: ModuleType, staged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    stub_python(staged)
    deb.files(root, tmp_path)
    (staged / "bin" / "python").unlink()
    deb.scripts(staged, "3.11", FINAL)
    # As a careful builder's umask leaves them.
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else 0o600)
    made = deb.close(root, tmp_path / "out", "0.1.0", "python3.11")
    asked = subprocess.run(["dpkg-deb", "--field", made], capture_output=True, text=True, check=True).stdout
    fields = dict(re.findall(r"(?m)^([A-Z][\w-]+): (.*)$", asked))
    assert made.name == f"hippod_0.1.0_{fields['Architecture']}.deb"
    assert (fields["Package"], fields["Version"]) == ("hippod", "0.1.0")
    # The Python that the libraries were compiled for, by name; `passwd` has useradd.
    assert fields["Depends"].split(", ")[0] == "python3.11"
    assert "passwd" in fields["Depends"].split(", ")
    assert int(fields["Installed-Size"]) > 0

    plain = tmp_path / "data.tar"
    with plain.open("wb") as out:
        subprocess.run(["dpkg-deb", "--fsys-tarfile", made], stdout=out, check=True)
    with tarfile.open(plain) as data:
        members = {member.name.removeprefix("./"): member for member in data}
    assert {(member.uid, member.gid, member.uname) for member in members.values()} == {(0, 0, "root")}
    for name, member in members.items():
        program = Path(name).parent == Path("opt/hippod/package/bin")
        wanted = 0o777 if member.issym() else 0o755 if member.isdir() or program else 0o644
        assert member.mode == wanted, name
    # The scripts create configuration and memory, which belong to the administrator.
    assert not any(name.startswith("etc/") and members[name].isfile() for name in members)
    assert not any(name.startswith(("var", "run")) for name in members)

    control = tmp_path / "control"
    subprocess.run(["dpkg-deb", "--control", made, control], check=True)
    assert {path.name for path in control.iterdir()} == {
        "control",
        "md5sums",
        "postinst",
        "postrm",
        "prerm",
    }
    for name in ("postinst", "postrm", "prerm"):
        assert (control / name).stat().st_mode & 0o777 == 0o755
        assert (control / name).read_text() == (ROOT / "systemd/package/scripts" / name).read_text()
    sums = dict(line.split("  ")[::-1] for line in (control / "md5sums").read_text().splitlines())
    assert set(sums) == {name for name in members if members[name].isfile()}
    for name, digest in sums.items():
        assert hashlib.md5((root / name).read_bytes(), usedforsecurity=False).hexdigest() == digest
